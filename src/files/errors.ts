import { PawlError } from '../values/error-codes.ts';
import { StoreFullError, StoreUnavailableError } from '../values/errors.ts';

/** Returns the code of a file system error, as in `ENOSPC`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown };
  return typeof code === 'string' && typeof errno === 'number' ? code : undefined;
}

/** Returns whether an error says that there is no such file. */
export function isAbsent(error: unknown): boolean {
  return systemCode(error) === 'ENOENT';
}

/** Waits for a file operation, and returns undefined if there is no such file. */
export async function orAbsent<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

const full = ['ENOSPC', 'EDQUOT'];

const advice: Readonly<Record<string, string>> = {
  EACCES: 'it may not be read or written; check the permissions of the folder and what is in it',
  EPERM: 'the system does not permit it; check the permissions, and that the file system has hard links',
  EROFS: 'it is on a file system that is mounted read-only',
  EIO: 'reading or writing it failed; check the disk',
  ENOTDIR: 'a file stands where a folder should be; choose another path',
  EISDIR: 'a folder stands where a file should be; choose another path',
  ELOOP: 'a symbolic link stands where a file or folder should be; remove it',
  EMFILE: 'this process has too many files open; raise its limit',
  ENFILE: 'this machine has too many files open',
  ENOTSUP: 'its file system has no hard links; choose a folder on another one',
};

/** Converts an error of the file system for the caller of what keeps runs or answers at `path`. */
export function fileError(error: unknown, path: string): unknown {
  if (error instanceof PawlError) return error;
  const options = { cause: error };
  const code = systemCode(error);
  if (code === undefined) return error;
  if (full.includes(code)) {
    return new StoreFullError(`the disk of ${path} is full; make room, what is stored is intact`, options);
  }
  const reason = advice[code] ?? (error as Error).message;
  return new StoreUnavailableError(`${path} is not available: ${reason}`, options);
}
