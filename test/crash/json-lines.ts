import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/**
 * One write to the end of the file: the line is there whole or not at all, whatever happens to the process next. The
 * first one also makes the file, so a process that dies between the two leaves an empty one.
 */
export function appendJsonLine(path: string, line: object): void {
  appendFileSync(path, `${JSON.stringify(line)}\n`);
}

/** What was noted so far: nothing where there is no file, or an empty one. */
export function readJsonLines<T>(path: string): T[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}
