/// <reference lib="esnext.disposable" preserve="true" />

import { resolve } from 'node:path';
import type { Codec } from '../../codec/port.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { checkFlag, checkKeys, checkWord, type KnownKeys, kindOf } from '../../values/known-options.ts';
import type { StoredRows, StoredRowsReader } from '../counting/rows.ts';
import type { DeliveryDriver } from '../deliveries/deliveries.ts';
import { Encryption } from '../encoding/encryption.ts';
import type { LimitDriver } from '../limits/buckets.ts';
import { withoutWrites } from '../read-only.ts';
import { leaseClock } from '../rules/lease-clock.ts';
import type {
  CommandDriver,
  DueDriver,
  HistoryDriver,
  JournalDriver,
  ListedHead,
  ListPage,
  MessageReader,
  OutcomeDriver,
  ScheduleDriver,
  StoreDriver,
  StoredTexts,
  StoreWrite,
  TakeDue,
  TakenHeads,
  ThreadDriver,
} from '../store-driver.ts';
import { storeFrom } from '../store-from.ts';
import type { WholeStore } from '../store-of.ts';
import type { WaitDriver } from '../topics.ts';
import { type RunDatabase, runDatabase } from './connection.ts';
import { publishIn } from './journals.ts';
import { type QueueOptions, WriteQueue } from './queue.ts';
import { Reader } from './reader.ts';
import { lookForDue, takeDueIn } from './taking.ts';
import { forkThread, writeThread } from './threads.ts';
import { expectIn, signalIn } from './topics.ts';
import { make, writeSchedule } from './writes.ts';

export interface SqliteStoreOptions {
  /**
   * The file; created, with its folder, at the first use.
   * @example path: 'data/runs.db'
   */
  readonly path: string;
  /**
   * What a resolved save survives: `power` a loss of power, by one disk sync per commit;
   * `process` the death of the process.
   * @default 'power'
   */
  readonly durability?: 'power' | 'process' | undefined;
  /**
   * How long a call waits while another process holds the lock. The event loop runs meanwhile.
   * @default 10_000
   */
  readonly busyTimeoutMs?: number | undefined;
  /**
   * Encrypts the stored texts: see `encrypt`.
   * @default none: texts are stored as they are
   * @example codec: encrypt({ keys: { k1: process.env.PAWL_KEY ?? '' }, current: 'k1' })
   */
  readonly codec?: Codec | undefined;
  /**
   * Opens an existing file for reading: nothing is made or changed in it, not even an older layout, and each write is refused
   * with UNSUPPORTED. SQLite may leave its -shm and -wal files beside the file.
   * @default false
   */
  readonly readOnly?: boolean | undefined;
  /**
   * For tests. All stores of one file must then share it, because leases use it.
   * @default the computer's
   * @example clock: testClock()
   */
  readonly clock?: Clock | undefined;
}

/** The store of `sqliteStore`. */
export interface SqliteStore extends WholeStore, StoredRowsReader {
  /** Waits for the pending writes, and closes the file. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const optionKeys: KnownKeys<SqliteStoreOptions> = {
  path: true,
  durability: true,
  busyTimeoutMs: true,
  codec: true,
  readOnly: true,
  clock: true,
};

/**
 * Stores records in one SQLite file, for all processes of one machine. The first use opens the file, so an error of opening it
 * (StoreUnavailableError, or CheckpointTooNewError for a newer layout) comes from the call that needed it.
 *
 * Writes of one turn of the event loop share a commit. Do not put the file on a network file system.
 *
 * @throws {TypeError} for an unknown option, or one of the wrong type
 * @example const store = sqliteStore({ path: 'runs.db' })
 */
export function sqliteStore(options: SqliteStoreOptions): SqliteStore {
  if (typeof options === 'string')
    throw new TypeError("sqliteStore takes options, not a string: write sqliteStore({ path: 'runs.db' })");
  checkKeys(options, optionKeys, { of: 'sqliteStore' });
  checkWord('sqliteStore: durability', options.durability, ['power', 'process']);
  if (typeof options.path !== 'string')
    throw new TypeError(`sqliteStore: path must be a string, not ${kindOf(options.path)}`);
  if (options.path === '') throw new TypeError("sqliteStore: path is empty: write a file, or ':memory:'");
  checkFlag('sqliteStore: readOnly', options.readOnly);
  const { durability = 'power', busyTimeoutMs = 10_000, readOnly: isReadOnly = false, clock = systemClock } = options;
  const path = options.path === ':memory:' ? options.path : resolve(options.path);
  const encryption = new Encryption(options.codec);
  const times = { leaseClock: leaseClock(clock), now: () => clock.now() };
  const database = runDatabase({ path, durability, isReadOnly, ...times, encryption });
  const driver = new SqliteDriver(database, { path, busyTimeoutMs, isReadOnly });
  const store = {
    ...storeFrom(driver, { codec: options.codec, steps: true, dropEncoding: 'before', clock }),
    storedRows: () => driver.countRows(),
  };
  return isReadOnly ? withoutWrites(store, `the store ${path}`) : store;
}

/** Tables with one transaction for the writes of each turn of the event loop. */
class SqliteDriver implements StoreDriver {
  readonly runsPerPage = 500;
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  readonly #reader: Reader;
  readonly #removals: Removals;
  readonly commands: CommandDriver;
  readonly outcomes: OutcomeDriver;
  readonly history: HistoryDriver;
  readonly due: DueDriver;
  readonly waits: WaitDriver;
  readonly journal: JournalDriver;
  readonly threads: ThreadDriver;
  readonly schedules: ScheduleDriver;
  readonly limits: LimitDriver;
  readonly deliveries: DeliveryDriver;

  constructor(database: RunDatabase, options: QueueOptions) {
    this.#database = database;
    this.#queue = new WriteQueue(database, options);
    this.#reader = new Reader(database, this.#queue, options);
    this.#removals = new Removals(database, this.#queue);
    this.waits = {
      expect: (write) => this.#queue.add((tables) => expectIn(tables, write)),
      signal: (write) => this.#queue.add((tables) => signalIn(tables, write)),
    };
    this.commands = { inbox: (of) => this.#reader.afterWrites(({ tables }) => tables.inboxes.read(of)) };
    this.outcomes = {
      find: (runId) => this.#reader.outcome(runId),
      forget: ({ dryRun, limit }) =>
        dryRun ? this.#queue.add(({ outcomes }) => outcomes.countExpired()) : this.#removals.sweep(limit),
    };
    this.history = {
      load: (runId, messages, signal) => this.#reader.load(runId, messages, { signal, hasEnded: true }),
      list: (page) => this.#reader.afterWrites(({ tables }) => tables.ended.page(page)),
      forget: ({ dryRun, limit }) =>
        dryRun ? this.#queue.add(({ ended }) => ended.countExpired()) : this.#removals.sweepEnded(limit),
      totals: (range) => this.#reader.afterWrites(({ tables }) => tables.ended.totals(range)),
    };
    this.due = {
      list: (page) => this.#reader.afterWrites(({ reads }) => reads.due(page)),
      take: (take) => this.#takeDue(take),
      countResting: () => this.#reader.afterWrites(({ reads }) => reads.countResting()),
      countRuns: () => this.#reader.afterWrites(({ counts }) => counts.read()),
    };
    this.deliveries = {
      take: async (take) => {
        const hasDue = await this.#reader.afterWrites(({ tables }) => tables.deliveries.hasDue(take.agents));
        return hasDue ? this.#queue.add(({ deliveries }) => deliveries.take(take)) : [];
      },
    };
    this.journal = {
      publish: (write, signal) => this.#queue.addPassing((tables) => publishIn(tables, write), signal),
      read: (runId, page) => this.#reader.journal(runId, page),
      content: (runId, range, row) => this.#reader.content(runId, range, row),
    };
    this.limits = { charge: (ids, decide) => this.#queue.add(({ limits }) => limits.charge(ids, decide)) };
    this.schedules = {
      list: () => this.#reader.afterWrites(({ tables }) => tables.schedules.list()),
      write: (write) => this.#queue.add((tables) => writeSchedule(tables, write)),
    };
    this.threads = {
      write: async (write) => {
        const { value, made } = await this.#queue.add((tables) => writeThread(tables, write));
        for (const { hasRemoved, rest } of made) if (hasRemoved) this.#removals.onHappened(rest);
        return value;
      },
      fork: (write) => this.#queue.add((tables) => forkThread(tables, write)),
      turns: (threads, query) => this.#reader.turns(threads, query),
      findQueued: (runId) => this.#reader.afterWrites(({ tables }) => tables.threads.queued(runId) ?? null),
      list: (page) => this.#reader.afterWrites(({ tables }) => tables.threads.list(page)),
    };
  }

  write<T>(write: StoreWrite<T>, signal?: AbortSignal): Promise<T> {
    // A step removes nothing.
    if (write.kind === 'append') return this.#queue.add((tables) => make(tables, write).value, signal);
    return this.#writeRemoving(write, signal);
  }

  async #writeRemoving<T>(write: StoreWrite<T>, signal: AbortSignal | undefined): Promise<T> {
    const { value, hasRemoved, rest } = await this.#queue.add((tables) => make(tables, write), signal);
    if (hasRemoved) this.#removals.onHappened(rest);
    // A process that lives for less than a minute never comes to its sweep.
    if (write.kind === 'end') this.#removals.sweepEndedSoon();
    return value;
  }

  /** Takes the lock of the file only if there is something to take. */
  async #takeDue(take: TakeDue): Promise<TakenHeads> {
    const seen = await this.#reader.afterWrites(({ tables }) => lookForDue(tables, take));
    if (seen.nextAt !== seen.now || take.limit === 0) return seen;
    return this.#queue.add((tables) => takeDueIn(tables, take));
  }

  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null> {
    return this.#reader.load(runId, messages, { signal });
  }

  list(page: ListPage): Promise<ListedHead[]> {
    return this.#reader.afterWrites(({ reads }) => reads.page(page));
  }

  countRows(): Promise<readonly StoredRows[]> {
    return this.#reader.afterWrites(({ counts }) => counts.storedRows());
  }

  changeMark(): Promise<string> {
    return this.#reader.afterWrites(({ reads }) => reads.changeMark());
  }

  async close(): Promise<void> {
    await this.#queue.idle();
    await this.#removals.end();
    await this.#queue.idle();
    this.#database.close();
  }
}

/** How many records of ended runs are removed in one transaction. Of a large one each removes a piece. */
const REMOVED_AT_ONCE = 20;

/** How many numbers of records are checked in one turn of the event loop. */
const LOOKED_AT_ONCE = 500;

/**
 * Removes deleted data from the files of a database: expired rows, old pages in the WAL, and the messages of large records.
 * Those are removed in pieces, each in its own transaction and turn of the event loop.
 */
class Removals {
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  /** Settles when this process has removed all pieces that it has to remove. */
  #pieces: Promise<void> = Promise.resolve();

  constructor(database: RunDatabase, queue: WriteQueue) {
    this.#database = database;
    this.#queue = queue;
  }

  /** Data was removed. @param rest the number of a record whose messages are not all removed */
  onHappened(rest?: number): void {
    if (rest !== undefined) this.#removeRest(rest);
    this.#database.scrubSoon();
  }

  /**
   * Removes expired outcomes and signals, and the rest of records that dead processes did not remove completely. @returns how many
   * outcomes
   */
  async sweep(limit = -1): Promise<number> {
    const { count, signals } = await this.#queue.add(({ outcomes, topics, deliveries }) => {
      deliveries.forgetExpired(limit);
      return { count: outcomes.forgetExpired(limit), signals: topics.forgetExpired(limit) };
    });
    if (count + signals > 0) this.onHappened();
    await this.#sweepRests();
    return count;
  }

  /** Removes the kept records whose time is over. @returns how many */
  async sweepEnded(limit = Number.POSITIVE_INFINITY): Promise<number> {
    for (let count = 0; ; ) {
      const removed = await this.#queue.add(({ ended, records }) =>
        ended.expired(REMOVED_AT_ONCE).map(({ no, runId }) => records.removeEnded(runId, no)),
      );
      for (const rest of removed) this.onHappened(rest);
      count += removed.length;
      if (removed.length < REMOVED_AT_ONCE || count >= limit) return count;
    }
  }

  /** After an end. A failure is left to the next sweep. */
  sweepEndedSoon(): void {
    this.#pieces = this.#pieces
      .then(() => this.sweepEnded())
      .then(
        () => {},
        () => {},
      );
  }

  /** Waits for the remaining pieces. */
  async end(): Promise<void> {
    await this.#pieces;
  }

  async #sweepRests(): Promise<void> {
    for (let from: number | undefined = 0; from !== undefined; ) {
      const at: number = from;
      const { found, next } = await this.#queue.add(({ records }) => records.findRest(at, LOOKED_AT_ONCE));
      for (const no of found) this.onHappened(no);
      from = next;
    }
  }

  #removeRest(no: number): void {
    const removed = this.#pieces.then(async () => {
      while (await this.#queue.add(({ records }) => records.removeRest(no)));
      this.#database.scrubSoon();
    });
    // A failure is left to the sweep, of this process or another.
    this.#pieces = removed.catch(() => {});
  }
}
