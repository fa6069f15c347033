import { accessSync, constants } from 'node:fs';
import { delimiter, join, sep } from 'node:path';

/** Quotes a word for a shell, if it needs quotes. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns the command as a person can type it: `pawl` where the PATH has it, else `npx pawl`. Folders of `node_modules/.bin`
 * do not count: npm and npx add them to the PATH of what they start, and the person's shell has none of them.
 */
export function commandOn(path: string): string {
  const name = process.platform === 'win32' ? 'pawl.cmd' : 'pawl';
  const folders = path.split(delimiter).filter((folder) => folder !== '' && !isOfPackages(folder));
  return folders.some((folder) => isExecutable(join(folder, name))) ? 'pawl' : 'npx pawl';
}

function isOfPackages(folder: string): boolean {
  const [last, above] = folder.split(sep).filter(Boolean).toReversed();
  return last === '.bin' && above === 'node_modules';
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The command, for a line that a person can type. */
export const PAWL: string = commandOn(process.env.PATH ?? '');
