import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** A folder for a store, in one of its own that goes when the tests of the file are over. It is not made. */
export function freshDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-files-'));
  folders.push(folder);
  return join(folder, 'runs');
}

/** All files below a folder, by their paths from there. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !statSync(join(folder, path)).isDirectory())
    .sort();
}

/** How often a text stands in the raw bytes of all files below a folder. */
export function countIn(folder: string, text: string): number {
  let count = 0;
  for (const file of filesBelow(folder)) {
    const bytes = readFileSync(join(folder, file));
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) count += 1;
  }
  return count;
}
