import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../../values/errors.ts';

const OPEN = 'open';
const BACKUP = 'backup';

/** What the file says of itself: `open` while a process may have commits that are in the -wal file alone, `backup` in a backup. */
export const fileState = [
  `CREATE TABLE file_state (
    no INTEGER PRIMARY KEY CHECK (no = 1),
    state TEXT NOT NULL,
    since REAL NOT NULL
  ) STRICT`,
];

/**
 * The mark of a file in use. A -wal file that is missing cannot be seen in the SQLite header, so the main file says whether there
 * must be one: the first commit of a process sets the mark, and is copied into the main file at once; a clean close clears it.
 */
export class OpenMark {
  readonly #read: StatementSync;
  readonly #set: StatementSync;
  readonly #clear: StatementSync;
  readonly #now: () => number;

  constructor(db: DatabaseSync, now: () => number) {
    this.#read = db.prepare('SELECT 1 FROM file_state WHERE state = ?');
    this.#set = db.prepare('INSERT INTO file_state (no, state, since) VALUES (1, ?, ?)');
    this.#clear = db.prepare('DELETE FROM file_state WHERE state = ?');
    this.#now = now;
  }

  isSet(): boolean {
    return this.#read.get(OPEN) !== undefined;
  }

  set(): void {
    this.#set.run(OPEN, this.#now());
  }

  clear(): void {
    this.#clear.run(OPEN);
  }
}

/** When a backup was taken, wall clock ms; undefined for a file that is no backup, or is of a layout without backups. */
export function backupTime(db: DatabaseSync): number | undefined {
  if (db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'file_state'").get() === undefined) return undefined;
  const since = db.prepare('SELECT since FROM file_state WHERE state = ?').get(BACKUP)?.since;
  return since === undefined ? undefined : Number(since);
}

/** Marks the copy of a store as a backup, which no process opens as a store. */
export function markBackup(db: DatabaseSync, takenAt: number): void {
  db.prepare('INSERT OR REPLACE INTO file_state (no, state, since) VALUES (1, ?, ?)').run(BACKUP, takenAt);
}

/** Makes the copy of a backup a store again. */
export function clearState(db: DatabaseSync): void {
  db.exec('DELETE FROM file_state');
}

/** Refuses a backup as a store: its runs would continue beside those of the store that it was taken of. */
export function refuseBackup(db: DatabaseSync, path: string): void {
  if (backupTime(db) === undefined) return;
  throw new StoreUnavailableError(
    `${path} is a backup; restore it first, \`pawl restore ${path} --store <new file>\`: its runs are then parked`,
  );
}

/** Returns the error for a main file whose -wal file is missing. */
export function missingWal(name: string, path: string): StoreUnavailableError {
  return new StoreUnavailableError(
    `${name} was in use, and its file ${path}-wal is missing: the newest steps are lost, unless another program has put them into the main file. ` +
      `Copy a store with \`pawl backup\`, or with its -wal file. If nothing is missing, \`pawl restore --accept-without-wal ${path}\``,
  );
}
