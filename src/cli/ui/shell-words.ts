import { accessSync, constants } from 'node:fs';
import { delimiter, join, sep } from 'node:path';
import { NPX_PAWL } from '../../values/texts/command-name.ts';

/**
 * Quotes a word for a shell, if it needs quotes. Characters that a terminal would obey, or not show, are written as escapes: the printed
 * line is then the word itself, and nothing of its quotes is lost on the way to the screen.
 */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (!/[\p{C}\p{Z}]/u.test(word.replaceAll(' ', ''))) return `'${word.replaceAll("'", `'\\''`)}'`;
  return `$'${[...word.toWellFormed()].map(escaped).join('')}'`;
}

function escaped(char: string): string {
  if (char === '\\' || char === "'") return `\\${char}`;
  if (char === ' ' || !/[\p{C}\p{Z}]/u.test(char)) return char;
  const code = (char.codePointAt(0) ?? 0).toString(16);
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\U${code.padStart(8, '0')}`;
}

/**
 * Returns the command as a person can type it: `pawl` where the PATH has it, else by npx. Folders of `node_modules/.bin`
 * do not count: npm and npx add them to the PATH of what they start, and the person's shell has none of them.
 */
export function commandOn(path: string): string {
  const name = process.platform === 'win32' ? 'pawl.cmd' : 'pawl';
  const folders = path.split(delimiter).filter((folder) => folder !== '' && !isOfPackages(folder));
  return folders.some((folder) => isExecutable(join(folder, name))) ? 'pawl' : NPX_PAWL;
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

/**
 * Returns a line that a person can type: the command with its words, quoted, and options. A word that begins with a dash would be read as
 * an option, so the words come last then, behind `--`.
 * @param options as they are typed, each with a space before it
 */
export function lineFor(command: string, words: readonly string[], options = ''): string {
  const quotedWords = words.map(quoted).join(' ');
  if (words.some((word) => word.startsWith('-'))) return `${PAWL} ${command}${options} -- ${quotedWords}`;
  return `${PAWL} ${command} ${quotedWords}${options}`;
}
