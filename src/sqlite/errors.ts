import { PawlError } from '../values/error-codes.ts';
import { RecordTooLargeError, StoreFullError, StoreUnavailableError } from '../values/errors.ts';

/** The primary result codes of SQLite that this store handles. */
const code = {
  busy: 5,
  locked: 6,
  readonly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  tooBig: 18,
  notADatabase: 26,
} as const;

/** What a user can do about a damaged SQLite file, for messages. */
export const DAMAGE_ADVICE = 'stop, copy the file, and restore it (`sqlite3 <file> .recover`)';

const advice: Readonly<Record<number, string>> = {
  [code.readonly]: 'it cannot be written; check the permissions of the file and its folder',
  [code.ioError]: 'reading or writing it failed; check the disk',
  [code.corrupt]: `its pages are damaged; ${DAMAGE_ADVICE}`,
  [code.cannotOpen]: 'it cannot be opened; check that its folder exists and can be written',
  [code.notADatabase]: 'it is not a SQLite database; choose another path',
};

/** How the message of an error of `exec` begins in Deno, which gives no number. */
const messages: readonly (readonly [message: string, code: number])[] = [
  ['database is locked', code.busy],
  ['database table is locked', code.locked],
  ['attempt to write a readonly database', code.readonly],
  ['disk I/O error', code.ioError],
  ['database disk image is malformed', code.corrupt],
  ['database or disk is full', code.full],
  ['unable to open database file', code.cannotOpen],
  ['string or blob too big', code.tooBig],
  ['file is not a database', code.notADatabase],
];

/** The primary result code of an error of SQLite; undefined for any other error. */
function resultCode(error: unknown): number | undefined {
  const { code: name, errcode, message } = (error ?? {}) as { code?: unknown; errcode?: unknown; message?: unknown };
  if (name !== 'ERR_SQLITE_ERROR') return undefined;
  if (typeof errcode === 'number') return errcode & 0xff;
  return messages.find(([text]) => String(message).startsWith(text))?.[1];
}

/**
 * Returns whether an error of SQLite says that the database is busy. Another connection holds the lock; a later retry may
 * succeed.
 */
export function isBusy(error: unknown): boolean {
  const found = resultCode(error);
  return found === code.busy || found === code.locked;
}

/**
 * Returns whether an error of SQLite says that the disk failed. The last write of this connection is uncertain. A second
 * sync of the same file could succeed without having written it, so the connection must not be used again.
 */
export function isIoError(error: unknown): boolean {
  return resultCode(error) === code.ioError;
}

/**
 * Returns whether an error of SQLite says that the file is damaged. This store never writes a number that JavaScript cannot
 * hold.
 */
export function isDamage(error: unknown): boolean {
  return resultCode(error) === code.corrupt || (error as { code?: unknown } | null)?.code === 'ERR_OUT_OF_RANGE';
}

/** Converts an error of SQLite or of the file system for a store's caller. */
export function storeError(error: unknown, path: string): unknown {
  if (error instanceof PawlError) return error;
  const found = resultCode(error);
  const options = { cause: error };
  if (found === code.full || systemCode(error) === 'ENOSPC') {
    return new StoreFullError(`the disk of ${path} is full; make room, what is stored is intact`, options);
  }
  if (found === code.tooBig) return new RecordTooLargeError(`a text is too long for ${path}`, options);
  if (found === code.busy || found === code.locked) {
    return new StoreUnavailableError(`${path} stayed locked by another process; find out which one holds it`, options);
  }
  if (found === undefined && systemCode(error) === undefined && !isDamage(error)) return error;
  const reason = advice[isDamage(error) ? code.corrupt : (found ?? 0)] ?? (error as Error).message;
  return new StoreUnavailableError(`the store ${path} is not available: ${reason}`, options);
}

/** The code of a file system error, as in `ENOTDIR`. */
function systemCode(error: unknown): string | undefined {
  const { code: name, errno } = (error ?? {}) as { code?: unknown; errno?: unknown };
  return typeof name === 'string' && typeof errno === 'number' ? name : undefined;
}
