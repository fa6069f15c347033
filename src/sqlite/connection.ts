import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../files/file-system.ts';
import { StoreUnavailableError } from '../values/errors.ts';

export interface DatabaseOptions<T> {
  /** Absolute, or `:memory:`. */
  readonly path: string;
  /** What errors call it. */
  readonly name: string;
  /** Whether each commit must survive the loss of power, which costs a sync of the disk. */
  readonly isSynced: boolean;
  /** Makes the tables in a new file, and refuses one that is not ours. */
  readonly makeTables: (db: DatabaseSync) => void;
  /** Prepares the statements of a connection. */
  readonly prepare: (db: DatabaseSync) => T;
}

/** How long one statement may block the event loop while another process holds the lock, ms. */
const BLOCKING_MS = 5;

/** How long a file that was there is taken to be there still, ms. */
const LOOK_EVERY_MS = 100;

/** How long after something was removed the WAL is emptied, which still has it, ms. */
const SCRUB_AFTER_MS = 2_000;

/** A WAL that one large transaction blew up shrinks back to this many bytes. */
const WAL_LIMIT = 2 ** 24;

/** An open database with its prepared statements. */
export class Connection<T> {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #statements: T;
  /** Which file was opened under the path; undefined in memory. */
  readonly #file: string | undefined;
  readonly #begin: { readonly write: StatementSync; readonly read: StatementSync };
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(db: DatabaseSync, path: string, statements: T) {
    this.#db = db;
    this.#path = path;
    this.#statements = statements;
    this.#file = identityOf(path);
    this.#begin = { write: db.prepare('BEGIN IMMEDIATE'), read: db.prepare('BEGIN') };
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
  }

  /** Runs `work` in a transaction: all of it is stored, or nothing. */
  transaction<R>(kind: 'read' | 'write', work: (statements: T) => R): R {
    this.#begin[kind].run();
    try {
      const result = work(this.#statements);
      this.#commit.run();
      return result;
    } catch (error) {
      // SQLite rolls back by itself after some errors, and then refuses to do it again.
      if (this.#db.isTransaction) this.#rollback.run();
      throw error;
    }
  }

  /**
   * Whether the file still has its name. SQLite would go on writing to a deleted one, and nobody would ever read it.
   * Looking costs as much as a tenth of a commit, so that it is done every so often.
   */
  hasFile(): boolean {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return true;
    const isThere = identityOf(this.#path) === this.#file;
    if (isThere) this.#lookedAt = now;
    return isThere;
  }

  /** Empties the WAL. @returns false while another connection is in the way */
  emptyWal(): boolean {
    return Number(this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0;
  }

  close(): void {
    this.#db.close();
  }
}

/** A database in a file: opened when it is first needed, and anew after a failure of the disk. */
export class Database<T> {
  readonly #options: DatabaseOptions<T>;
  #connection: Connection<T> | undefined;
  #scrubbing: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DatabaseOptions<T>) {
    this.#options = options;
  }

  /** @throws when it cannot be opened, or its file is gone */
  get(): Connection<T> {
    const { name } = this.#options;
    if (this.#isClosed) throw new StoreUnavailableError(`${name} was closed`);
    this.#connection ??= open(this.#options);
    if (this.#connection.hasFile()) return this.#connection;
    this.drop();
    throw new StoreUnavailableError(`${name} was deleted or replaced while it was open; restore the file`);
  }

  /**
   * Something was removed: its pages are overwritten, but the WAL has copies of what they were. It is emptied soon; under
   * a load that never leaves a gap for it, what is written next overwrites it.
   */
  scrubSoon(): void {
    if (this.#isClosed || this.#scrubbing) return;
    this.#scrubbing = setTimeout(() => {
      this.#scrubbing = undefined;
      if (!this.#scrub()) this.scrubSoon();
    }, SCRUB_AFTER_MS).unref();
  }

  /** @returns false when it is to be tried again */
  #scrub(): boolean {
    try {
      return this.#connection?.emptyWal() ?? true;
    } catch {
      // A disk that fails is reported by the next write; the next removal tries again.
      return true;
    }
  }

  /** Gives the connection up; the next call opens another one. */
  drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    try {
      connection?.close();
    } catch {
      // It is of no use any more; why was reported where it failed.
    }
  }

  close(): void {
    this.#isClosed = true;
    // The last connection empties the WAL by itself. Others may be open.
    if (this.#scrubbing) this.#scrub();
    clearTimeout(this.#scrubbing);
    this.drop();
  }
}

function open<T>({ path, isSynced, makeTables, prepare }: DatabaseOptions<T>): Connection<T> {
  if (path !== ':memory:') makePrivate(path);
  // Loaded at the first use: whoever imports the package need not want a database.
  const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
  const db = new Opened(path, { timeout: BLOCKING_MS });
  try {
    makeTables(db);
    db.exec('PRAGMA journal_mode = WAL');
    db.exec(`PRAGMA synchronous = ${isSynced ? 'FULL' : 'NORMAL'}`);
    db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`);
    // What is deleted is overwritten. FAST would leave whole pages that are free now as they were.
    db.exec('PRAGMA secure_delete = ON');
    return new Connection(db, path, prepare(db));
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Makes an empty file that only this user may read, where there is none: SQLite would make one that the umask opens to others.
 * Its -wal and -shm files get the permissions of the database.
 */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE));
  } catch {
    // It is there already, or cannot be made: SQLite says why it cannot be opened then.
  }
}

function identityOf(path: string): string | undefined {
  const stat = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}
