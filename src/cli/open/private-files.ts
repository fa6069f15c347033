import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { Failure } from '../ui/failure.ts';

const MOST_BYTES = 65_536;

/**
 * Undefined if there is no such file, or if it is too large.
 * @param options.isSecret other users may not even read it
 * @throws {Failure} if it is not private
 */
export function readPrivate(
  folder: string,
  path: string,
  { isSecret = false }: { readonly isSecret?: boolean } = {},
): string | undefined {
  let descriptor: number;
  try {
    checkPrivate(folder, statSync(folder));
    // A link could point to a file of another user.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error instanceof Failure ? error : new Failure(`${path} cannot be read (${code})`, { cause: error });
  }
  try {
    return checkPrivateFile(path, descriptor, isSecret) > MOST_BYTES ? undefined : readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** Writes a file that only this user can read, at once or not at all. */
export function writePrivate(path: string, text: string): void {
  placePrivate(path, text, renameSync);
}

/**
 * Makes a file that only this user can read. Of several processes one makes it.
 * @returns false if the file exists: it stays as it is
 */
export function createPrivate(path: string, text: string): boolean {
  try {
    placePrivate(path, text, linkNew);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** A link is made once, and has its whole text from the first moment on. A file system without links renames. */
function linkNew(unfinished: string, path: string): void {
  try {
    linkSync(unfinished, path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'].includes(code)) throw error;
    renameSync(unfinished, path);
  }
  rmSync(unfinished, { force: true });
}

function placePrivate(path: string, text: string, place: (unfinished: string, path: string) => void): void {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    const descriptor = openSync(unfinished, 'wx', 0o600);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    place(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/**
 * Returns the folder for state of the command line on this machine: $PAWL_STATE_HOME, else `pawl` in the platform's folder
 * for state.
 */
export function stateFolder(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.PAWL_STATE_HOME) return resolve(env.PAWL_STATE_HOME);
  return join(platformFolder(env, platform), 'pawl');
}

function platformFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  if (platform === 'win32') return env.LOCALAPPDATA || join(homedir(), 'AppData', 'Local');
  // A relative path in XDG_STATE_HOME is invalid, and its specification says to ignore it.
  const { XDG_STATE_HOME: given = '' } = env;
  return isAbsolute(given) ? given : join(homedir(), '.local', 'state');
}

/** Makes a folder that only this user can read or write. @throws {Failure} if it exists and others can write to it */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  checkPrivate(path, statSync(path));
}

/**
 * Checks that only this user can change the file that lists the agent modules, or its folder.
 * @throws {Failure} if another user owns a file or folder, or can write to it
 */
function checkPrivate(path: string, { uid, mode }: Pick<Stats, 'uid' | 'mode'>): void {
  // Windows has neither: there, access lists protect a user's folders.
  const self = process.geteuid?.();
  if (self === undefined) return;
  if (uid !== self) throw new Failure(`${path} belongs to user ${uid}, and this is user ${self}; remove it`);
  if ((mode & 0o022) !== 0) {
    const permissions = (mode & 0o777).toString(8).padStart(4, '0');
    throw new Failure(`other users can write to ${path} (mode ${permissions}); run chmod go-w on it, or remove it`);
  }
}

/** The same for an open file. @returns its size in bytes */
function checkPrivateFile(path: string, descriptor: number, isSecret: boolean): number {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) throw new Failure(`${path} is not a file; remove it`);
  checkPrivate(path, stats);
  if (isSecret && process.geteuid?.() !== undefined && (stats.mode & 0o044) !== 0)
    throw new Failure(`other users can read ${path}; remove it`);
  return stats.size;
}
