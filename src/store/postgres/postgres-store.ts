/// <reference lib="esnext.disposable" preserve="true" />

import type { Codec } from '../../codec/port.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { RecordTooLargeError } from '../../values/errors.ts';
import { checkFlag, checkKeys, type KnownKeys } from '../../values/known-options.ts';
import type { StoredRows, StoredRowsReader } from '../counting/rows.ts';
import type { DeliveryDriver } from '../deliveries/deliveries.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { LimitDriver } from '../limits/buckets.ts';
import { withoutWrites } from '../read-only.ts';
import { decideNow } from '../rules/decision.ts';
import type {
  CommandDriver,
  DueDriver,
  HistoryDriver,
  ListedHead,
  ListPage,
  MessageReader,
  OutcomeDriver,
  ScheduleDriver,
  StoreDriver,
  StoredTexts,
  StoreWrite,
  ThreadDriver,
} from '../store-driver.ts';
import { storeFrom } from '../store-from.ts';
import type { WholeStore } from '../store-of.ts';
import type { WaitDriver } from '../topics.ts';
import { eraseRows, markDelivered, readEnded, takeDeliveries } from './ended.ts';
import { GroupWriter } from './group-writer.ts';
import { acknowledgeRows, readInbox } from './inboxes.ts';
import { Journals } from './journals.ts';
import { chargeBuckets } from './limits/limit-table.ts';
import type { PoolSession, PostgresPool } from './pool.ts';
import { Reader } from './reader.ts';
import { countLater, readSnapshot } from './run-queries.ts';
import { serverTimes } from './run-row.ts';
import { readSchedules, writeSchedule } from './schedules/schedule-table.ts';
import { Server } from './server.ts';
import { Taker } from './taking/taker.ts';
import { forkThread, readQueued, readThreads, readTurns, writeThread } from './threads/thread-tables.ts';
import { expectIn, signalIn } from './topics.ts';
import { readCounts } from './totals/counts.ts';
import { readRows } from './totals/rows.ts';
import { readTotals } from './totals/totals.ts';
import { WriteQueue } from './write-queue.ts';

export interface PostgresStoreOptions {
  /**
   * A pool of `pg`, which the host makes, sizes and ends. The store uses up to six of its connections at a time.
   * @example pool: new Pool({ connectionString: process.env.DATABASE_URL })
   */
  readonly pool: PostgresPool;
  /**
   * The schema of its tables; created at the first use.
   * @default 'pawl'
   * @example schema: 'agents'
   */
  readonly schema?: string | undefined;
  /**
   * How long a call is retried, over new connections, before it is refused with STORE_UNAVAILABLE.
   * @default 10_000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Runs `NOTIFY pawl_due` in the commit that makes a run due, for workers of `executor.work({ listen })`. Each such commit then
   * waits for the others of the whole database for a moment.
   * @default false
   */
  readonly notify?: boolean | undefined;
  /**
   * Encrypts the stored texts: see `encrypt`.
   * @default none: texts are stored as they are
   * @example codec: encrypt({ keys: { k1: process.env.PAWL_KEY ?? '' }, current: 'k1' })
   */
  readonly codec?: Codec | undefined;
  /**
   * Reads an existing schema: nothing is made or changed in it, not even an older layout, and each write is refused with
   * UNSUPPORTED.
   * @default false
   */
  readonly readOnly?: boolean | undefined;
  /**
   * For tests. All stores of one schema must then share it, because leases use it instead of the server's clock.
   * @default the server's
   * @example clock: testClock()
   */
  readonly clock?: Clock | undefined;
}

const optionKeys: KnownKeys<PostgresStoreOptions> = {
  pool: true,
  schema: true,
  timeoutMs: true,
  notify: true,
  codec: true,
  readOnly: true,
  clock: true,
};

/** PostgreSQL accepts no statement of 2^30 bytes. */
const MAX_BYTES = 1_000_000_000;

/** The store of `postgresStore`. */
export interface PostgresStore extends WholeStore, StoredRowsReader {
  /** Processes of several computers share it. */
  readonly isShared: true;
  /** Waits for the pending writes. Every later call is refused. The pool stays open: it belongs to the host. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Stores records in a PostgreSQL database (13 or later), for any number of hosts. The first use creates the tables, or updates
 * them to the layout of this version; an error of that (STORE_UNAVAILABLE, or CHECKPOINT_TOO_NEW for a newer layout) comes
 * from the call that needed it.
 *
 * Writes of one turn of the event loop share one statement. A connection that breaks, a server that restarts, or an answer
 * that never arrives leads to a retry over another connection, which recognises writes that were stored. Leases use the
 * server's clock.
 *
 * @throws {TypeError} for an unknown option, an invalid schema name, or a value that is not a pool
 * @example const store = postgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL }) })
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  checkKeys(options, optionKeys, { of: 'postgresStore' });
  checkFlag('postgresStore: readOnly', options.readOnly);
  const { pool, schema = 'pawl', timeoutMs = 10_000, notify = false, readOnly: isReadOnly = false } = options;
  const { clock = systemClock } = options;
  if (typeof pool?.connect !== 'function') throw new TypeError('postgresStore needs a pool: a Pool of pg');
  if (!(timeoutMs > 0)) throw new TypeError(`timeoutMs must be above 0, not ${timeoutMs}`);
  const server = new Server({ pool, schema, times: serverTimes(clock), notifies: notify, isReadOnly });
  const driver = new PostgresDriver(server, timeoutMs);
  const store = {
    ...storeFrom(driver, { codec: options.codec, blobs: true, clock }),
    isShared: true,
    storedRows: () => driver.countRows(),
  } as const;
  return isReadOnly ? withoutWrites(store, `the PostgreSQL store in schema ${schema}`) : store;
}

/** A driver whose writes compare the token of a run's row. Commands need no decision: one statement checks and changes. */
class PostgresDriver implements StoreDriver {
  readonly runsPerPage = 500;
  readonly #server: Server;
  readonly #queue: WriteQueue;
  readonly #reader: Reader;
  readonly commands: CommandDriver;
  readonly outcomes: OutcomeDriver;
  readonly history: HistoryDriver;
  readonly due: DueDriver;
  readonly waits: WaitDriver;
  readonly threads: ThreadDriver;
  readonly schedules: ScheduleDriver;
  readonly limits: LimitDriver;
  readonly deliveries: DeliveryDriver;
  readonly journal: Journals;

  constructor(server: Server, timeoutMs: number) {
    const writer = new GroupWriter(server);
    this.#server = server;
    this.#queue = new WriteQueue((...group) => writer.perform(...group), timeoutMs);
    const reader = new Reader(server, this.#queue, timeoutMs);
    this.#reader = reader;
    const taker = new Taker(server, { reader, queue: this.#queue });
    this.commands = {
      inbox: (of) => {
        const read = (session: PoolSession) => readInbox(session, server, of);
        return 'runId' in of ? reader.afterWrites(read, of.runId) : reader.insist(read);
      },
      send: (command) => reader.send(command),
      acknowledge: (claim, ids) =>
        reader.afterWrites((session) => acknowledgeRows(session, server.tables, { claim, ids }), claim.runId),
    };
    this.outcomes = {
      find: (runId) => reader.outcome(runId),
      forget: (options) => reader.forgetOutcomes(options),
    };
    this.history = {
      load: (runId, messages, signal) => reader.load(runId, messages, { signal, hasEnded: true }),
      list: (page) => reader.afterWrites((session) => readEnded(session, server, page)),
      forget: (options) => reader.forgetEnded(options),
      totals: (range) => reader.afterWrites((session) => readTotals(session, server.tables, range)),
    };
    this.due = {
      list: (page) => reader.due(page),
      take: (take) => taker.take(take),
      countResting: () => reader.afterWrites((session) => countLater(session, server)),
      countRuns: () => reader.afterWrites((session) => readCounts(session, server)),
    };
    this.journal = new Journals(server, { queue: this.#queue, reader, waitMs: timeoutMs });
    this.waits = {
      expect: (write) => reader.afterWrites((session) => expectIn(session, server, write), write.claim.runId),
      signal: (write) => reader.insist((session) => signalIn(session, server, write)),
    };
    this.deliveries = { take: (take) => reader.insist((session) => takeDeliveries(session, server, take)) };
    this.limits = {
      charge: (ids, decide) => reader.insist((session) => chargeBuckets(session, server, { ids, decide })),
    };
    this.schedules = {
      list: () => reader.insist((session) => readSchedules(session, server)),
      write: (write) => reader.insist((session) => writeSchedule(session, server, write)),
    };
    this.threads = threadsOf(server, { reader, queue: this.#queue });
  }

  async write<T>(write: StoreWrite<T>, signal?: AbortSignal): Promise<T> {
    if (write.body && write.size > MAX_BYTES / 3) checkBytes(write.body);
    if (write.kind === 'deliver') {
      const { value, change } = decideNow(write.decide, {});
      const delivered = { runId: write.runId, id: change?.delivered ?? '' };
      await this.#reader.afterWrites((session) => markDelivered(session, this.#server, delivered), write.runId);
      return value;
    }
    return write.kind === 'erase'
      ? this.#reader.afterWrites((session) => eraseRows(session, this.#server, write), write.runId)
      : this.#queue.add(write, signal);
  }

  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null> {
    return this.#reader.load(runId, messages, { signal });
  }

  list(page: ListPage): Promise<ListedHead[]> {
    return this.#reader.list(page);
  }

  countRows(): Promise<readonly StoredRows[]> {
    return this.#reader.insist((session) => readRows(session, this.#server));
  }

  changeMark(): Promise<string> {
    return this.#reader.afterWrites((session) => readSnapshot(session));
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue.settle(), this.journal.end()]);
    this.#server.close();
  }
}

/** The threads of a PostgreSQL store. They wait for the earlier writes of their runs. */
function threadsOf(
  server: Server,
  { reader, queue }: { readonly reader: Reader; readonly queue: WriteQueue },
): ThreadDriver {
  return {
    write: async (write) => {
      await queue.settle(write.end?.runId ?? '');
      return reader.insist((session) => writeThread(session, server, write));
    },
    fork: (fork) => reader.insist((session) => forkThread(session, server, fork)),
    turns: (threads, query) => reader.insist((session) => readTurns(session, server, { threads, query })),
    findQueued: (runId) => reader.insist((session) => readQueued(session, server, runId)),
    list: (page) => reader.insist((session) => readThreads(session, server, page)),
  };
}

/** Checks that PostgreSQL accepts a body in one statement. @throws {RECORD_TOO_LARGE} if it does not */
function checkBytes({ runId, head, start, rows, blobs, journal }: StoredBody): void {
  const parts = [...rows, ...blobs.pieces, ...(journal?.rows ?? [])];
  const texts = [head, start?.meta ?? '', start?.extras ?? '', ...parts.map(({ text }) => text)];
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= MAX_BYTES) return;
  throw new RecordTooLargeError(`run ${runId}: a write of ${bytes} bytes; PostgreSQL takes up to ${MAX_BYTES} at once`);
}
