import { WriteOutsideRootError } from '../errors.ts';

/** The most bytes of a path, and of one name in it: every file system accepts them, with room for the root. */
const MAX_PATH = 1_024;
const MAX_NAME = 255;

/**
 * Checks and normalizes a path from a model, relative to the root, without `.` and inner `..`; '' is the root itself. It
 * does not use the disk.
 * @throws {WRITE_OUTSIDE_ROOT} if it is not relative, leads out of the root, or into a folder that models may not use
 */
export function insideRoot(path: unknown): string {
  if (typeof path !== 'string') throw new WriteOutsideRootError(`a path must be a string, not ${typeof path}`);
  const fault = faultOf(path);
  if (fault !== undefined) throw refused(path, fault);
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '..' && names.pop() === undefined) throw refused(path, 'it leads out of the root');
    if (!['', '.', '..'].includes(name)) names.push(name);
  }
  for (const name of names) {
    if (isKept(name)) throw refused(path, `${JSON.stringify(name)} is not accessible to models`);
    if (Buffer.byteLength(name) > MAX_NAME) throw refused(path, `a name in it is longer than ${MAX_NAME} bytes`);
  }
  return names.join('/');
}

/** Like `insideRoot`, for a file: the root itself and a path that ends in a slash are refused. */
export function fileInsideRoot(path: unknown): string {
  const inside = insideRoot(path);
  if (inside === '' || /(^|\/)\.{0,2}$/.test(path as string))
    throw refused(path as string, 'it names a folder, not a file');
  return inside;
}

/** Returns the error that refuses a path of a model. @param why the end of the sentence */
export function refused(path: string, why: string): WriteOutsideRootError {
  return new WriteOutsideRootError(`${quotedPath(path)} is refused: ${why}; give a path relative to the root`);
}

/** Quotes a path for a message: it may be long, and contain control characters. */
export function quotedPath(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function faultOf(path: string): string | undefined {
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'it is absolute';
  if (path.includes('\\')) return 'it has a backslash, which is a slash on some systems';
  if (/\p{Cc}/u.test(path) || !path.isWellFormed()) return 'it has control or invalid characters';
  return Buffer.byteLength(path) > MAX_PATH ? `it is longer than ${MAX_PATH} bytes` : undefined;
}

/**
 * Returns whether a name is that of a folder that models may not use: `.git`, whose hooks are executed, and `.pawl`, which
 * is ours. Some file systems accept other spellings: any case, invisible characters, trailing dots, short names, streams.
 */
export function isKept(name: string): boolean {
  return /^(\.git|\.pawl|git~\d+|pawl~\d+)[. ]*(:|$)/.test(plainName(name));
}

/** Returns a file name in lower case and normal form, without invisible characters. */
export function plainName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
}
