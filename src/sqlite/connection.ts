import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../files/private-modes.ts';
import { InvalidRunIdError, StoreUnavailableError } from '../values/errors.ts';
import { isBusy } from './errors.ts';

/** A mark in a file: a process may have commits that are in the -wal file alone. */
interface Mark {
  isSet(): boolean;
  set(): void;
  clear(): void;
}

interface MarkOptions {
  readonly of: (db: DatabaseSync) => Mark;
  /** The error for a marked file without a -wal file. */
  readonly missing: () => Error;
}

interface DatabaseOptions<T> {
  /** Absolute, or `:memory:`. */
  readonly path: string;
  /** The name in error messages. */
  readonly name: string;
  /** Whether each commit must survive a power loss, which costs a sync of the disk. */
  readonly isSynced: boolean;
  /** Opens an existing file, and writes nothing to it. SQLite still needs its -shm and -wal files, and leaves them. */
  readonly isReadOnly?: boolean | undefined;
  /** Makes the tables in a new file, and throws if the file belongs to another application. */
  readonly makeTables: (db: DatabaseSync) => void;
  /** Prepares the statements of a connection. */
  readonly prepare: (db: DatabaseSync) => T;
  /** Absent: a file without its -wal file is not noticed. */
  readonly mark?: MarkOptions | undefined;
}

/** Not imported: a bundle of the package must also load where there are no modules of Node. */
const fs = () => process.getBuiltinModule('node:fs');

/** How long one statement may block the event loop while another process holds the lock, ms. */
const BLOCKING_MS = 5;

const CUT = 'the SQLite of this runtime cuts a text at a NUL character: use ids without it, or another store';

/** How long the result of the last check that the file exists is used, ms. */
const LOOK_EVERY_MS = 100;

/** The WAL still has what was deleted: it is emptied this long after a delete, ms. */
const SCRUB_AFTER_MS = 2_000;

/** SQLite truncates a WAL that one large transaction has grown to this many bytes. */
const WAL_LIMIT = 2 ** 24;

/** An open SQLite database with its prepared statements. */
class Connection<T> {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #statements: T;
  /** The identity of the opened file; undefined in memory. */
  readonly #file: string | undefined;
  readonly #begin: { readonly write: StatementSync; readonly read: StatementSync };
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #isSynced: boolean;
  /** Changes when another connection has committed. */
  readonly #othersCommits: StatementSync;
  readonly #mark: Mark | undefined;
  /** The commits of others with which the mark was seen. */
  #markedAt: unknown;
  /** Whether the mark is not to be set, or not any more: this thread ends. */
  #isLeaving = !setsMarks();
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** @param mark of a file that this connection writes to */
  constructor(
    { db, mark }: { readonly db: DatabaseSync; readonly mark: Mark | undefined },
    { path, isSynced }: Pick<DatabaseOptions<T>, 'path' | 'isSynced'>,
    statements: T,
  ) {
    this.#db = db;
    this.#mark = mark;
    if (mark) {
      if (opened.size === 0) process.on('exit', clearAll);
      opened.add(this);
    }
    this.#path = path;
    this.#isSynced = isSynced;
    this.#statements = statements;
    this.#file = identityOf(path);
    this.#begin = { write: db.prepare('BEGIN IMMEDIATE'), read: db.prepare('BEGIN') };
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#othersCommits = db.prepare('PRAGMA data_version');
  }

  /**
   * Runs `work` in a transaction: SQLite stores all of it or nothing. `passing`: a write that a loss of power may undo; it does
   * not wait for the disk. A write gets a number as well: as long as it stays the same, no other connection has committed.
   */
  transaction<R>(kind: 'read' | 'write' | 'passing', work: (statements: T, othersCommits: unknown) => R): R {
    if (kind !== 'passing' || !this.#isSynced) return this.#transaction(kind === 'read' ? 'read' : 'write', work);
    this.#db.exec('PRAGMA synchronous = NORMAL');
    try {
      return this.#transaction('write', work);
    } finally {
      this.#db.exec('PRAGMA synchronous = FULL');
    }
  }

  #transaction<R>(kind: 'read' | 'write', work: (statements: T, othersCommits: unknown) => R): R {
    this.#begin[kind].run();
    let isMarked = true;
    try {
      // Within a write no other connection can commit.
      const seen = kind === 'write' ? this.#othersCommits.get()?.data_version : undefined;
      if (kind === 'write') isMarked = this.#isMarked(seen);
      const result = work(this.#statements, seen);
      this.#commit.run();
      if (!isMarked) this.#copyMark();
      this.#markedAt = seen ?? this.#markedAt;
      return result;
    } catch (error) {
      // After some errors SQLite has already rolled back, and a second rollback would fail.
      if (this.#db.isTransaction) this.#rollback.run();
      throw error;
    }
  }

  /** Sets the mark within a transaction, unless it is set: another process clears it when it closes. @returns whether it was set */
  #isMarked(seen: unknown): boolean {
    if (!this.#mark || this.#isLeaving || this.#markedAt === seen || this.#mark.isSet()) return true;
    this.#mark.set();
    return false;
  }

  /** Copies the mark, and the commit that set it, into the main file. */
  #copyMark(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The commit is stored. A later checkpoint copies the mark, and the next write finds a disk that fails.
    }
  }

  /**
   * Clears the mark before a close. Where another process has the file open, the next write of that process sets it again.
   * SQLite copies all commits into the main file when the last connection closes, so the main file then has no mark.
   */
  clearMark(): void {
    this.#isLeaving = true;
    if (opened.delete(this) && opened.size === 0) process.off('exit', clearAll);
    try {
      this.#clear();
    } catch (error) {
      // Another process writes: the file is still in use.
      if (!isBusy(error)) this.#clearAgain();
    }
  }

  #clear(): void {
    if (this.#mark?.isSet()) this.#transaction('write', () => this.#mark?.clear());
  }

  /** A whole file must not keep its mark because its disk failed once, or is full: what is copied makes room in the -wal file. */
  #clearAgain(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(RESTART)');
      this.#clear();
    } catch {
      // The close of SQLite most probably fails as well, and leaves the -wal file.
    }
  }

  /**
   * Whether the file still has its name. SQLite would continue to write to a deleted file, and the data would be lost.
   * The check costs as much as a tenth of a commit, so it runs only every so often.
   */
  hasFile(): boolean {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return true;
    const isThere = identityOf(this.#path) === this.#file;
    if (isThere) this.#lookedAt = now;
    return isThere;
  }

  /** Empties the WAL. @returns false if another connection prevents it */
  emptyWal(): boolean {
    return Number(this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0;
  }

  close(): void {
    this.clearMark();
    this.#db.close();
  }
}

/**
 * The connections of this thread that write to files with marks. Node closes them when the thread ends, after the last callback,
 * and would close one that is not referred to any more.
 */
const opened = new Set<{ clearMark(): void }>();

function clearAll(): void {
  for (const connection of [...opened]) connection.clearMark();
}

/**
 * Whether this thread may set marks: it must be able to clear them before its connections are closed for it. A worker thread that
 * is terminated runs no callback any more; other runtimes than Node have not been shown to run one.
 */
function setsMarks(): boolean {
  if ('bun' in process.versions || 'deno' in process.versions) return false;
  return process.getBuiltinModule('node:worker_threads').isMainThread;
}

/** A SQLite database in a file. It is opened at the first use, and again after a failure of the disk. */
export class Database<T> {
  readonly #options: DatabaseOptions<T>;
  #connection: Connection<T> | undefined;
  /** The file that this process has had open: it closed it itself, and its -wal file with it. */
  #known: string | undefined;
  #scrubbing: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DatabaseOptions<T>) {
    this.#options = options;
  }

  /** The connection to the database, which is opened at the first use. @throws if it cannot be opened, or its file is gone */
  get(): Connection<T> {
    const { name } = this.#options;
    if (this.#isClosed) throw new StoreUnavailableError(`${name} was closed`);
    if (!this.#connection) {
      this.#connection = open(this.#options, this.#known);
      this.#known = identityOf(this.#options.path);
    }
    if (this.#connection.hasFile()) return this.#connection;
    this.drop();
    throw new StoreUnavailableError(`${name} was deleted or replaced while it was open; restore the file`);
  }

  /**
   * Call this after a delete. SQLite overwrites the deleted pages, but the WAL still has copies: it is emptied soon. Under
   * a load that never pauses, later writes overwrite the copies.
   */
  scrubSoon(): void {
    if (this.#isClosed || this.#scrubbing) return;
    this.#scrubbing = setTimeout(() => {
      this.#scrubbing = undefined;
      if (!this.#scrub()) this.scrubSoon();
    }, SCRUB_AFTER_MS).unref();
  }

  /** Empties the log of the database, so that deleted texts do not stay in it. @returns false if it must be tried again */
  #scrub(): boolean {
    try {
      return this.#connection?.emptyWal() ?? true;
    } catch {
      // The next write reports a disk that fails; the next delete tries again.
      return true;
    }
  }

  /** Closes the connection; the next call opens another one. */
  drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    try {
      connection?.close();
    } catch {
      // The connection is not used again, and its failure was reported where it happened.
    }
  }

  close(): void {
    this.#isClosed = true;
    // The last connection empties the WAL when it closes, but others may be open.
    if (this.#scrubbing) this.#scrub();
    clearTimeout(this.#scrubbing);
    this.drop();
  }
}

/** Opens a connection. @param known the identity of a file whose -wal file need not be there */
function open<T>(options: DatabaseOptions<T>, known: string | undefined): Connection<T> {
  const { path, name, isSynced, isReadOnly = false, makeTables, prepare } = options;
  if (isReadOnly && !fs().existsSync(path)) throw new StoreUnavailableError(`${name} does not exist`);
  if (!isReadOnly && path !== ':memory:') makePrivate(path);
  // Loaded at the first use: not every user of the package needs a database.
  const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
  if (identityOf(path) !== known && lacksWal(options)) throw options.mark?.missing();
  const db = new Opened(path, { timeout: BLOCKING_MS, readOnly: isReadOnly });
  try {
    if (cutsTexts(db)) refuseNul(db);
    makeTables(db);
    const mark = path === ':memory:' ? undefined : options.mark?.of(db);
    if (!isReadOnly) setUpWrites(db, isSynced);
    return new Connection({ db, mark: isReadOnly ? undefined : mark }, { path, isSynced }, prepare(db));
  } catch (error) {
    db.close();
    throw error;
  }
}

function setUpWrites(db: DatabaseSync, isSynced: boolean): void {
  db.exec('PRAGMA journal_mode = WAL');
  db.exec(`PRAGMA synchronous = ${isSynced ? 'FULL' : 'NORMAL'}`);
  db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`);
  // SQLite's own default, said again: a new file whose page size was chosen has 100 pages otherwise, and what a run that ends
  // removes was then read again from the WAL, page by page.
  db.exec('PRAGMA cache_size = -2000');
  // Deleted data is overwritten. FAST would leave whole free pages unchanged.
  db.exec('PRAGMA secure_delete = ON');
}

/** Returns whether the runtime reads a text only up to a NUL, as Deno 2.9 does: two ids would look like one. */
function cutsTexts(db: DatabaseSync): boolean {
  return db.prepare("SELECT 'a' || char(0) AS text").get()?.text === 'a';
}

/** Makes each statement of a database refuse a text with a NUL. */
function refuseNul(db: DatabaseSync): void {
  const prepare = db.prepare.bind(db);
  db.prepare = (sql) => {
    const statement = prepare(sql);
    for (const method of ['run', 'get', 'all', 'iterate'] as const) {
      const call = statement[method].bind(statement) as (...values: unknown[]) => never;
      statement[method] = (...values: unknown[]) => {
        if (values.some((value) => typeof value === 'string' && value.includes('\0'))) throw new InvalidRunIdError(CUT);
        return call(...values);
      };
    }
    return statement;
  };
}

/**
 * Makes an empty file that only this user may read, if there is none. SQLite would make one with the umask's permissions.
 * SQLite gives the -wal and -shm files the permissions of the database.
 */
function makePrivate(path: string): void {
  fs().mkdirSync(process.getBuiltinModule('node:path').dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
  try {
    fs().closeSync(fs().openSync(path, 'wx', PRIVATE_FILE));
  } catch {
    // If the file cannot be made, SQLite reports why it cannot open it.
  }
}

/**
 * Whether a file has the mark, and no -wal file. Only the main file is read: a connection that reads the database would make an
 * empty -wal file.
 */
function lacksWal<T>({ path, mark }: DatabaseOptions<T>): boolean {
  if (!mark || path === ':memory:' || walSize(path) !== undefined) return false;
  const url = process.getBuiltinModule('node:url').pathToFileURL(path);
  url.search = '?immutable=1';
  try {
    const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
    const db = new Opened(url, { readOnly: true });
    try {
      // A process that has opened the file meanwhile has its commits in a -wal file.
      return mark.of(db).isSet() && !walSize(path);
    } finally {
      db.close();
    }
  } catch {
    // No file, no database, or one of an older layout: opening it says what it is.
    return false;
  }
}

/** The bytes of the -wal file, which is beside the file that a link leads to; undefined if there is none. */
function walSize(path: string): number | undefined {
  try {
    return fs().statSync(`${fs().realpathSync(path)}-wal`).size;
  } catch {
    return undefined;
  }
}

function identityOf(path: string): string | undefined {
  const stat = path === ':memory:' ? undefined : fs().statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}
