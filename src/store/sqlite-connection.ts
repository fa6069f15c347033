import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../run/errors.ts';
import type { Sealing } from './sealing.ts';
import { InboxTable } from './sqlite-inboxes.ts';
import type { LeaseClock } from './sqlite-lease-clock.ts';
import { LeaseTable } from './sqlite-leases.ts';
import { OutcomeTable } from './sqlite-outcomes.ts';
import { Reads } from './sqlite-reads.ts';
import { RecordTable } from './sqlite-records.ts';
import { prepareSchema } from './sqlite-schema.ts';
import type { Tables } from './sqlite-writes.ts';

export interface DatabaseOptions {
  readonly path: string;
  readonly durability: 'power' | 'process';
  readonly leaseClock: LeaseClock;
  /** Wall clock, ms. */
  readonly now: () => number;
  readonly sealing: Sealing;
}

/** How long one statement may block the event loop while another process holds the lock, ms. */
const BLOCKING_MS = 5;

/** How long a file that was there is taken to be there still, ms. */
const LOOK_EVERY_MS = 100;

/** A WAL that one large transaction blew up shrinks back to this many bytes. */
const WAL_LIMIT = 2 ** 24;

/** An open database with its prepared statements. */
export class Connection {
  readonly tables: Tables;
  readonly reads: Reads;
  readonly #db: DatabaseSync;
  readonly #file: string | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  readonly #path: string;
  readonly #begin: { readonly write: StatementSync; readonly read: StatementSync };
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;

  constructor(db: DatabaseSync, { path, leaseClock, now, sealing }: DatabaseOptions) {
    this.#db = db;
    this.#path = path;
    this.#file = fileIdentity(path);
    this.#begin = { write: db.prepare('BEGIN IMMEDIATE'), read: db.prepare('BEGIN') };
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    const leases = new LeaseTable(db, leaseClock);
    const outcomes = new OutcomeTable(db, now, sealing);
    this.tables = { records: new RecordTable(db, sealing), leases, outcomes, inboxes: new InboxTable(db, sealing) };
    this.reads = new Reads(db, leases, sealing);
  }

  /** Runs `work` in a transaction: all of it is stored, or nothing. */
  transaction<T>(kind: 'read' | 'write', work: (connection: this) => T): T {
    this.#begin[kind].run();
    try {
      const result = work(this);
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
    const isThere = fileIdentity(this.#path) === this.#file;
    if (isThere) this.#lookedAt = now;
    return isThere;
  }

  close(): void {
    this.#db.close();
  }
}

/** The database of a store: opened when it is first needed, and anew after a failure of the disk. */
export class Database {
  readonly #options: DatabaseOptions;
  #connection: Connection | undefined;
  #isClosed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** @throws when it cannot be opened, or its file is gone */
  get(): Connection {
    const { path } = this.#options;
    if (this.#isClosed) throw new StoreUnavailableError(`the store ${path} was closed`);
    this.#connection ??= open(this.#options);
    if (this.#connection.hasFile()) return this.#connection;
    this.drop();
    throw new StoreUnavailableError(`the store ${path} was deleted or replaced while it was open; restore the file`);
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
    this.drop();
  }
}

function open(options: DatabaseOptions): Connection {
  const { path, durability } = options;
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true });
  const db = new DatabaseSync(path, { timeout: BLOCKING_MS });
  try {
    prepareSchema(db, path);
    db.exec('PRAGMA journal_mode = WAL');
    db.exec(`PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'}`);
    db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`);
    return new Connection(db, options);
  } catch (error) {
    db.close();
    throw error;
  }
}

function fileIdentity(path: string): string | undefined {
  const stat = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}
