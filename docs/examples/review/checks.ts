/** A finding for a person to look at. */
export interface Finding {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly what: string;
}

const MAX_LINE = 120;
/** A file that is full of one thing needs no more of it. */
const MAX_PER_FILE = 10;

const checks: readonly { readonly what: string; readonly isIn: (line: string) => boolean }[] = [
  { what: 'unfinished work', isIn: (line) => /\b(?:TO-?DO|FIX-?ME)\b/.test(line) },
  { what: 'long line', isIn: (line) => line.length > MAX_LINE },
  { what: 'space at the end of a line', isIn: (line) => /\S[ \t]+$/.test(line) },
];

/** What can be found in a text without understanding it. */
export function findingsIn(file: string, text: string): Finding[] {
  if (text.trim() === '') return [{ file, line: 1, what: 'empty file' }];
  const found = text
    .split('\n')
    .flatMap((line, i) => checks.filter(({ isIn }) => isIn(line)).map(({ what }) => ({ file, line: i + 1, what })));
  return found.slice(0, MAX_PER_FILE);
}
