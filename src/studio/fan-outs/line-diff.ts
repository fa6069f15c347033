import type { DiffLine, ProposedFile } from '../fan-out-wire.ts';

/** Unchanged lines that are shown around a change. */
const CONTEXT = 3;
/** The most lines of one diff that are sent. */
const MAX_LINES = 1_000;
/** The longest line that is sent, UTF-16 units. */
const MAX_LINE = 2_000;
/** Pairs of lines that are compared; larger changes are shown as removed and added whole. */
const MAX_PAIRS = 1_000_000;

/** Pairs of lines that may still be compared for one answer: many files of many models would hold up the process. */
export interface DiffWork {
  pairs: number;
}

/** Returns the work that one view may take. */
export function workOfView(): DiffWork {
  return { pairs: 20 * MAX_PAIRS };
}

/** Compares two texts by lines. @param work what it takes is taken from this */
export function lineDiff(
  before: string,
  after: string,
  work: DiffWork = workOfView(),
): Pick<ProposedFile, 'added' | 'removed' | 'lines' | 'more'> {
  const all = comparedLines(linesOf(before), linesOf(after), work);
  const count = (kind: DiffLine['kind']) => all.filter((line) => line.kind === kind).length;
  const shown = inParts(all);
  const lines = shown.slice(0, MAX_LINES).map(({ kind, text }) => ({ kind, text: shortened(text) }));
  return { added: count('add'), removed: count('del'), lines, more: shown.length - lines.length };
}

function shortened(text: string): string {
  return text.length <= MAX_LINE ? text : `${text.slice(0, MAX_LINE).toWellFormed()}… ${text.length - MAX_LINE} more`;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** All lines of both texts, in order. */
function comparedLines(before: readonly string[], after: readonly string[], work: DiffWork): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const as = (kind: DiffLine['kind'], lines: readonly string[]) => lines.map((text) => ({ kind, text }));
  const removed = before.slice(start, before.length - end);
  const added = after.slice(start, after.length - end);
  const pairs = removed.length * added.length;
  const isTooMuch = pairs > Math.min(MAX_PAIRS, work.pairs);
  if (!isTooMuch) work.pairs -= pairs;
  const middle = isTooMuch ? [...as('del', removed), ...as('add', added)] : shortestEdit(removed, added);
  return [...as('same', before.slice(0, start)), ...middle, ...as('same', before.slice(before.length - end))];
}

/** The longest common lines stay; the others are removed, then added. */
function shortestEdit(removed: readonly string[], added: readonly string[]): readonly DiffLine[] {
  const width = added.length + 1;
  const common = new Uint32Array((removed.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = removed.length - 1; row >= 0; row--)
    for (let column = added.length - 1; column >= 0; column--)
      common[row * width + column] =
        removed[row] === added[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < removed.length || column < added.length) {
    const [old = '', text = ''] = [removed[row], added[column]];
    const isBoth = row < removed.length && column < added.length;
    if (isBoth && old === text) lines.push({ kind: 'same', text });
    else if (row < removed.length && (!isBoth || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: 'del', text: old });
      row += 1;
      continue;
    } else {
      lines.push({ kind: 'add', text });
      column += 1;
      continue;
    }
    row += 1;
    column += 1;
  }
  return lines;
}

/** The changed lines with what is around them, each part under its head. */
function inParts(all: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = new Uint8Array(all.length);
  for (const [index, { kind }] of all.entries())
    if (kind !== 'same') isNear.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  const shown: DiffLine[] = [];
  let [before, after] = [1, 1];
  for (let index = 0; index < all.length; index++) {
    const line = all[index] as DiffLine;
    if (isNear[index] && !isNear[index - 1]) {
      const end = isNear.indexOf(0, index);
      const part = all.slice(index, end < 0 ? all.length : end);
      const [gone, come] = [part.filter(({ kind }) => kind !== 'add'), part.filter(({ kind }) => kind !== 'del')];
      shown.push({ kind: 'at', text: `@@ -${before},${gone.length} +${after},${come.length} @@` });
    }
    if (isNear[index]) shown.push(line);
    if (line.kind !== 'add') before += 1;
    if (line.kind !== 'del') after += 1;
  }
  return shown;
}
