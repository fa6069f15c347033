import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ModelResponse, type PreviewedFile, previewWrites } from '../../fan-out/index.ts';
import type { CommandContext } from '../command.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import { visible } from '../ui/foreign-text.ts';
import type { Style } from '../ui/output.ts';

/** Whose changes are shown, against which folder. */
interface Shown {
  readonly root: string;
  readonly answer: ModelResponse;
  /** Then no heading says whose they are. */
  readonly isOnly: boolean;
}

/** Prints what an answer would change in the folder as it is now, as a unified diff. What is not seen in it is written out. */
export async function printDiff({ args, output }: CommandContext, { root, answer, isOnly }: Shown): Promise<void> {
  const files = await previewWrites(answer, { root });
  const text = diffOf(files);
  if (args.json) {
    const warnings = files.flatMap(({ path, warning }) => (warning === undefined ? [] : [{ path, warning }]));
    return output.printJson({ model: answer.modelId, diff: text, warnings });
  }
  if (!isOnly) output.print(`## ${oneLine(answer.modelId)}`);
  const paint = (style: Style, line: string) => output.paintResult(style, line);
  if (text !== '') output.printText(coloured(visible(text.trimEnd()), paint));
  sayWarnings(output, files);
}

/** One line for each file that would be executed or obeyed without being asked for. */
export function sayWarnings(
  output: CommandContext['output'],
  files: readonly { readonly path: string; readonly warning?: string }[],
): void {
  for (const { path, warning } of files) {
    if (warning !== undefined) output.say(`pawl: warning: read ${oneLine(path)} first: ${warning}`);
  }
}

const styles: Readonly<Record<string, Style>> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** As Git colours it: the heads of the files bold, what comes green, what goes red. */
export function coloured(diff: string, paint: (style: Style, line: string) => string): string {
  let isHead = true;
  const lines = diff.split('\n').map((line) => {
    if (line.startsWith('diff ')) isHead = true;
    else if (line.startsWith('@@')) isHead = false;
    const style = isHead ? 'bold' : styles[line.charAt(0)];
    return style === undefined ? line : paint(style, line);
  });
  return lines.join('\n');
}

/** Both states of the files go into a folder of their own, and a program that can compare folders compares them. */
function diffOf(files: readonly PreviewedFile[]): string {
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
    return compared(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Git where it is there, else diff. */
function compared(folder: string): string {
  const git = ['--no-pager', 'diff', '--no-index', '--no-prefix', '--no-ext-diff', '--no-textconv', '--color=never'];
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
