import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ModelResponse, previewWrites } from '../../fan-out/index.ts';
import type { CommandContext } from '../command.ts';
import { Failure, oneLine } from '../failure.ts';

/** Whose changes are shown, against which folder. */
interface Shown {
  readonly root: string;
  readonly answer: ModelResponse;
  /** Then no heading says whose they are. */
  readonly isOnly: boolean;
}

/** Prints what an answer would change in the folder as it is now, as a unified diff. */
export async function printDiff({ args, output }: CommandContext, { root, answer, isOnly }: Shown): Promise<void> {
  const text = await diffOf(root, answer, process.stdout.isTTY === true && !process.env.NO_COLOR && !args.json);
  if (args.json) return output.print(JSON.stringify({ model: answer.modelId, diff: text }));
  if (!isOnly) output.print(`## ${oneLine(answer.modelId)}`);
  if (text !== '') output.print(text.trimEnd());
}

/** Both states of the files go into a folder of their own, and a program that can compare folders compares them. */
async function diffOf(root: string, answer: ModelResponse, isColoured: boolean): Promise<string> {
  const files = await previewWrites(answer, { root });
  const folder = mkdtempSync(join(tmpdir(), 'pawl-diff-'));
  const put = (side: 'a' | 'b', path: string, content: string | Uint8Array) => {
    const at = join(folder, side, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, content);
  };
  try {
    for (const side of ['a', 'b']) mkdirSync(join(folder, side));
    for (const { path, before, after } of files) {
      if (before) put('a', path, before);
      if (after !== null) put('b', path, after);
    }
    return compared(folder, isColoured);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Git where it is there, else diff. */
function compared(folder: string, isColoured: boolean): string {
  const git = [
    '--no-pager',
    'diff',
    '--no-index',
    '--no-prefix',
    '--no-ext-diff',
    '--no-textconv',
    `--color=${isColoured ? 'always' : 'never'}`,
  ];
  for (const [program, args] of [
    ['git', git],
    ['diff', ['-ruN']],
  ] as const) {
    const { status, stdout } = spawnSync(program, [...args, 'a', 'b'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    // 1 = they differ.
    if (status === 0 || status === 1) return stdout;
  }
  throw new Failure('neither git nor diff is installed, and one of them is needed to show changes');
}
