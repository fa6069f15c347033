import { Database } from '../../sqlite/connection.ts';
import type { Encryption } from '../encoding/encryption.ts';
import type { LeaseClock } from '../rules/lease-clock.ts';
import { missingWal, OpenMark } from './copies/file-state.ts';
import { DeliveryTable } from './deliveries.ts';
import { EndedTable } from './ended.ts';
import { InboxTable } from './inboxes.ts';
import { JournalTables } from './journals.ts';
import { KnownRuns } from './known-runs.ts';
import { LeaseTable } from './leases.ts';
import { LimitTable } from './limits/limit-table.ts';
import { OutcomeTable } from './outcomes.ts';
import { Reads } from './reads.ts';
import { RecordTable } from './records.ts';
import { ScheduleTable } from './schedules/schedule-table.ts';
import { checkSchema, prepareSchema } from './schema.ts';
import { TakingTables } from './taking.ts';
import { ThreadTables } from './threads.ts';
import { TopicTables } from './topics.ts';
import { Counts } from './totals/counts.ts';
import type { Tables } from './writes.ts';

interface RunDatabaseOptions {
  readonly path: string;
  readonly durability: 'power' | 'process';
  readonly isReadOnly: boolean;
  readonly leaseClock: LeaseClock;
  /** Wall clock, ms. */
  readonly now: () => number;
  readonly encryption: Encryption;
}

/** The prepared statements of a store's connection. */
export interface Statements {
  readonly tables: Tables;
  readonly reads: Reads;
  readonly counts: Counts;
}

export type RunDatabase = Database<Statements>;

/** Opens the database of a SQLite store: its file, its settings, its tables. */
export function runDatabase(options: RunDatabaseOptions): RunDatabase {
  const { path, durability, isReadOnly, leaseClock, now, encryption } = options;
  return new Database({
    path,
    name: `the store ${path}`,
    isSynced: durability === 'power',
    isReadOnly,
    makeTables: (db) => (isReadOnly ? checkSchema(db, path) : prepareSchema(db, path)),
    mark: { of: (db) => new OpenMark(db, now), missing: () => missingWal(`the store ${path}`, path) },
    prepare: (db) => {
      const known = new KnownRuns();
      const leases = new LeaseTable(db, leaseClock, known);
      const records = new RecordTable(db, encryption, known);
      const outcomes = new OutcomeTable(db, now);
      const inboxes = new InboxTable(db, now);
      const [ended, deliveries] = [new EndedTable(db, now), new DeliveryTable(db, now)];
      const [topics, journals] = [new TopicTables(db, now), new JournalTables(db)];
      const reads = new Reads(db, leases, now);
      const threads = lazy(() => new ThreadTables(db));
      const schedules = lazy(() => new ScheduleTable(db));
      const limits = lazy(() => new LimitTable(db, now));
      const taking = lazy(() => new TakingTables(db, { leases, reads, now }));
      const tables = {
        ...{ records, leases, outcomes, inboxes, topics, ended, deliveries, journals, known },
        get threads() {
          return threads();
        },
        get schedules() {
          return schedules();
        },
        get limits() {
          return limits();
        },
        get taking() {
          return taking();
        },
      };
      const counting = lazy(() => new Counts(db, leases, now));
      return {
        tables,
        reads,
        get counts() {
          return counting();
        },
      };
    },
  });
}

/** Makes a value at its first use: the statements of threads and of taking runs are a third of all, and many processes use none. */
function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
