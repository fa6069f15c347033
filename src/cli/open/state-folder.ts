import { fstatSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { Failure } from '../ui/failure.ts';

/**
 * The folder in which this user's commands keep what belongs to this machine: $PAWL_STATE_HOME, else `pawl` in the
 * platform's folder for state.
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

/** @throws {Failure} if another user owns a file or folder, or can write to it */
export function checkPrivate(path: string, { uid, mode }: Pick<Stats, 'uid' | 'mode'>): void {
  // Windows has neither: there a user's folders are protected by their access lists.
  const self = process.geteuid?.();
  if (self === undefined) return;
  if (uid !== self) throw new Failure(`${path} belongs to user ${uid}, and this is user ${self}; remove it`);
  if ((mode & 0o022) !== 0) {
    const permissions = (mode & 0o777).toString(8).padStart(4, '0');
    throw new Failure(`other users can write to ${path} (mode ${permissions}); run chmod go-w on it, or remove it`);
  }
}

/** The same for an open file. @returns its size in bytes */
export function checkPrivateFile(path: string, descriptor: number): number {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) throw new Failure(`${path} is not a file; remove it`);
  checkPrivate(path, stats);
  return stats.size;
}
