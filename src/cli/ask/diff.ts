import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ModelResponse, type PreviewedFile, previewWrites } from '../../fan-out/index.ts';
import type { CommandContext } from '../command.ts';
import { visible } from '../ui/control-characters.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import type { Style } from '../ui/output.ts';

/** Which changes are shown, and for which folder. */
interface Shown {
  readonly root: string;
  readonly answer: ModelResponse;
  /** If it is the only answer, no heading names the model. */
  readonly isOnly: boolean;
}

/** Prints what an answer would change in the folder, as a unified diff. Invisible characters are shown as codes. */
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

/** Prints one warning for each proposed file that tools execute or obey automatically (hooks, configuration). */
export function sayWarnings(
  output: CommandContext['output'],
  files: readonly { readonly path: string; readonly warning?: string }[],
): void {
  for (const { path, warning } of files) {
    if (warning !== undefined) output.say(`pawl: warning: read ${oneLine(path)} first: ${warning}`);
  }
}

const styles: Readonly<Record<string, Style>> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** Colours the lines of a diff as Git does: headers bold, added lines green, removed lines red. */
function coloured(diff: string, paint: (style: Style, line: string) => string): string {
  let isHead = true;
  const lines = diff.split('\n').map((line) => {
    if (line.startsWith('diff ')) isHead = true;
    else if (line.startsWith('@@')) isHead = false;
    const style = isHead ? 'bold' : styles[line.charAt(0)];
    return style === undefined ? line : paint(style, line);
  });
  return lines.join('\n');
}

/** Writes both states of the files to folders, and compares the folders with a program. */
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

/** Compares with Git if it is installed, else with diff. */
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
    // 1 = the folders differ.
    if (status === 0 || status === 1) return stdout;
  }
  throw new Failure('neither git nor diff is installed, and one of them is needed to show changes');
}
