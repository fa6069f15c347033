import { systemCode } from '../../files/errors.ts';
import { LockedError } from '../../files/lock.ts';
import { CheckpointTooNewError, PawlError, StoreFullError, StoreUnavailableError } from '../../values/errors.ts';

const full = ['ENOSPC', 'EDQUOT'];

const advice: Readonly<Record<string, string>> = {
  EACCES: 'it may not be read or written; check the permissions of the folder and what is in it',
  EPERM: 'the system does not permit it; check the permissions, and that the file system has hard links',
  EROFS: 'it is on a file system that is mounted read-only',
  EIO: 'reading or writing it failed; check the disk',
  ENOTDIR: 'a file stands where a folder should be; choose another path',
  ESPIPE: 'a pipe stands where a file of the store should be; remove it',
  ENXIO: 'a socket stands where a file of the store should be; remove it',
  EISDIR: 'a folder stands where a file of the store should be; remove it',
  ELOOP: 'a symbolic link stands where a file or folder of the store should be; remove it',
  EMFILE: 'this process has too many files open; raise its limit',
  ENFILE: 'this machine has too many files open',
  ENOTSUP: 'its file system has no hard links; choose a folder on another one',
};

/** Converts an error of the file system for a store's caller. @param dir the store's folder */
export function storeError(error: unknown, dir: string): unknown {
  if (error instanceof PawlError) return error;
  const options = { cause: error };
  if (error instanceof LockedError) {
    return new StoreUnavailableError(`a run of ${dir} stayed locked: ${error.message}; find out what it does`, options);
  }
  const code = systemCode(error);
  if (code === undefined) return error;
  if (full.includes(code)) {
    return new StoreFullError(`the disk of ${dir} is full; make room, what is stored is intact`, options);
  }
  const reason = advice[code] ?? (error as Error).message;
  return new StoreUnavailableError(`the store ${dir} is not available: ${reason}`, options);
}

/** Returns the error for a file store whose layout this version does not know. */
export function layoutError(what: string, found: number, known: number): CheckpointTooNewError {
  return new CheckpointTooNewError(
    `${what} has layout ${found}, this Pawl knows ${known}: upgrade the package (nothing was changed)`,
  );
}
