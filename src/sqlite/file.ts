import type { DatabaseSync } from 'node:sqlite';
import { backoffMs, lockBackoff } from '../values/backoff.ts';
import { CheckpointTooNewError, StoreUnavailableError } from '../values/errors.ts';
import { Database } from './connection.ts';
import { isBusy, isIoError, storeError } from './errors.ts';

/** The layout of a file, and how its statements are prepared. */
export interface FileLayout<T> {
  /** Stored in the file as `application_id`: identifies the application. */
  readonly applicationId: number;
  /** Stored in the file as `user_version`. */
  readonly version: number;
  /** The statements that make the tables. */
  readonly tables: string;
  /** Prepares the statements of a connection. */
  readonly prepare: (db: DatabaseSync) => T;
}

interface FileOptions {
  readonly path: string;
  /** How long a transaction waits while another process holds the lock, ms. */
  readonly busyTimeoutMs: number;
}

/**
 * A SQLite file beside the run store that the processes of one machine share: a budget. It is opened at the
 * first transaction, and again after a failure of the disk. Commits survive the death of the process. A power loss may
 * undo the last commits: their data is not worth a sync of the disk for each.
 */
export class SqliteFile<T> {
  readonly path: string;
  readonly #database: Database<T>;
  readonly #busyTimeoutMs: number;

  constructor(layout: FileLayout<T>, { path, busyTimeoutMs }: FileOptions) {
    const place = path === ':memory:' ? path : process.getBuiltinModule('node:path').resolve(path);
    this.path = place;
    this.#database = new Database({
      path: place,
      name: place,
      isSynced: false,
      makeTables: (db) => prepareTables(db, place, layout),
      prepare: layout.prepare,
    });
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  /**
   * Runs `work` in a transaction: SQLite stores all of it or nothing. While it waits for a lock, the event loop is free.
   * @throws {STORE_UNAVAILABLE} and the other errors of a store
   */
  async transaction<R>(work: (statements: T) => R): Promise<R> {
    const latest = performance.now() + this.#busyTimeoutMs;
    for (let retries = 1; ; retries++) {
      try {
        return this.#database.get().transaction('write', work);
      } catch (error) {
        if (isIoError(error)) this.#database.drop();
        if (!isBusy(error) || performance.now() >= latest) throw storeError(error, this.path);
      }
      // With jitter, so that processes that wait for one lock do not retry at the same time.
      const ms = backoffMs(retries, lockBackoff);
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  }

  close(): void {
    this.#database.close();
  }
}

/** Makes the tables in a new file. Throws without a change if an existing file belongs to another application. */
function prepareTables<T>(db: DatabaseSync, path: string, { applicationId, version, tables }: FileLayout<T>): void {
  if (isEmpty(db)) {
    // Both must precede the first table. Rows are small, so small pages mean fewer bytes to write.
    db.exec('PRAGMA page_size = 2048');
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE');
    try {
      // Another process may have made the tables meanwhile.
      if (isEmpty(db)) db.exec(`${tables}; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  if (readPragma(db, 'application_id') !== applicationId) {
    throw new StoreUnavailableError(`${path} is a database of another application; choose another path`);
  }
  const found = readPragma(db, 'user_version');
  if (found > version) {
    throw new CheckpointTooNewError(
      `${path} has layout ${found}, this Pawl reads up to ${version}; upgrade the package`,
    );
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function readPragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
