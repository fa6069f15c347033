import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckpointTooNewError, StoreUnavailableError } from '../run/errors.ts';
import { isBusy, isIoError, storeError } from '../store/sqlite-errors.ts';

/** What stands in a file, and who may read it. */
export interface Layout<T> {
  /** Kept in the file as `application_id`: says whose database it is. */
  readonly applicationId: number;
  /** Kept in the file as `user_version`. */
  readonly version: number;
  /** The statements that make the tables. */
  readonly tables: string;
  /** Prepares the statements of a connection. */
  readonly prepare: (db: DatabaseSync) => T;
}

export interface FileOptions {
  readonly path: string;
  /** How long a transaction waits while another process holds the lock, ms. */
  readonly busyTimeoutMs: number;
}

interface Connection<T> {
  readonly db: DatabaseSync;
  readonly statements: T;
  readonly begin: { readonly read: StatementSync; readonly write: StatementSync };
  readonly commit: StatementSync;
  readonly rollback: StatementSync;
  /** Which file was opened under the path; undefined in memory. */
  readonly identity: string | undefined;
  lookedAt: number;
}

/** How long one statement may block the event loop while another process holds the lock, ms. */
const BLOCKING_MS = 5;

/** How long a file that was there is taken to be there still, ms. */
const LOOK_EVERY_MS = 100;

/** A WAL that one large transaction blew up shrinks back to this many bytes. */
const WAL_LIMIT = 2 ** 24;

/**
 * A SQLite file beside the runs' store, shared by the processes of one machine: a budget, or an audit. It is opened at
 * the first transaction, and anew after a failure of the disk. What was committed survives the death of the process; the
 * last commits before a loss of power may be missing, because they are not worth a sync of the disk each.
 */
export class SqliteFile<T> {
  readonly path: string;
  readonly #layout: Layout<T>;
  readonly #busyTimeoutMs: number;
  #connection: Connection<T> | undefined;
  #isClosed = false;

  constructor(layout: Layout<T>, { path, busyTimeoutMs }: FileOptions) {
    this.path = path === ':memory:' ? path : resolve(path);
    this.#layout = layout;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  /**
   * Runs `work` in a transaction: all of it is stored, or nothing. The event loop goes on while it waits for a lock.
   * @throws {StoreUnavailableError} and the other errors of a store
   */
  async transaction<R>(kind: 'read' | 'write', work: (statements: T) => R): Promise<R> {
    const latest = performance.now() + this.#busyTimeoutMs;
    for (let retries = 1; ; retries++) {
      try {
        return this.#attempt(kind, work);
      } catch (error) {
        if (isIoError(error)) this.#drop();
        if (!isBusy(error) || performance.now() >= latest) throw storeError(error, this.path);
      }
      // With jitter: processes that wait for one lock should not come back together.
      await sleep(Math.min(200, 2 ** retries) * (0.5 + Math.random()));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #attempt<R>(kind: 'read' | 'write', work: (statements: T) => R): R {
    const { begin, commit, rollback, db, statements } = this.#open();
    begin[kind].run();
    try {
      const result = work(statements);
      commit.run();
      return result;
    } catch (error) {
      // SQLite rolls back by itself after some errors, and then refuses to do it again.
      if (db.isTransaction) rollback.run();
      throw error;
    }
  }

  #open(): Connection<T> {
    if (this.#isClosed) throw new StoreUnavailableError(`${this.path} was closed`);
    this.#connection ??= connect(this.path, this.#layout);
    if (isStillThere(this.#connection, this.path)) return this.#connection;
    this.#drop();
    throw new StoreUnavailableError(`${this.path} was deleted or replaced while it was open; restore the file`);
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    try {
      connection?.db.close();
    } catch {
      // It is of no use any more; why was reported where it failed.
    }
  }
}

function connect<T>(path: string, layout: Layout<T>): Connection<T> {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true });
  // Loaded at the first use: whoever imports the package need not want an audit.
  const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
  const db = new Opened(path, { timeout: BLOCKING_MS });
  try {
    prepareTables(db, path, layout);
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`);
    return {
      db,
      statements: layout.prepare(db),
      begin: { read: db.prepare('BEGIN'), write: db.prepare('BEGIN IMMEDIATE') },
      commit: db.prepare('COMMIT'),
      rollback: db.prepare('ROLLBACK'),
      identity: identityOf(path),
      lookedAt: performance.now(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Makes the tables in a new file, and looks at whose file it is otherwise. A file that is not ours is not touched. */
function prepareTables<T>(db: DatabaseSync, path: string, { applicationId, version, tables }: Layout<T>): void {
  if (isEmpty(db)) {
    // Both must come before the first table. Rows are small: small pages are less to write.
    db.exec('PRAGMA page_size = 2048');
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE');
    try {
      // Another process may have done it meanwhile.
      if (isEmpty(db)) db.exec(`${tables}; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  if (readPragma(db, 'application_id') !== applicationId) {
    throw new StoreUnavailableError(`${path} is the database of something else; choose another path`);
  }
  const found = readPragma(db, 'user_version');
  if (found > version) {
    throw new CheckpointTooNewError(`${path} has layout ${found}, this Pawl knows ${version}: upgrade the package`);
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function readPragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/** SQLite would go on writing to a deleted file, and nobody would ever read it. Looking costs, so it is done every so often. */
function isStillThere(connection: Connection<unknown>, path: string): boolean {
  const now = performance.now();
  if (now - connection.lookedAt < LOOK_EVERY_MS) return true;
  connection.lookedAt = now;
  return identityOf(path) === connection.identity;
}

function identityOf(path: string): string | undefined {
  const stat = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}
