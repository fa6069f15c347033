import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { countAmong, OTHER_KIND } from '../../counting/counts.ts';
import type { RunCounts } from '../../counting/port.ts';
import { type KindTables, type RowsRow, rowsQuery, type StoredRows, storedRowsOf } from '../../counting/rows.ts';
import type { LeaseTable } from '../leases.ts';
import { GIVEN_BACK } from '../schema.ts';

interface CountedRow {
  readonly run_id: string;
  readonly due_at: number | null;
  readonly paused_by: string | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly attempts: number | null;
  readonly expires_at: number;
  readonly boot: string;
  readonly deployment: number | null;
  readonly updated_at: number | null;
  readonly sent_at: number | null;
}

/** Counts the runs in SQLite by the index of their times. Only rows of runs with an owner are read. */
export class Counts {
  readonly #db: DatabaseSync;
  readonly #leases: LeaseTable;
  readonly #now: () => number;
  readonly #waiting: StatementSync;
  readonly #parked: StatementSync;
  readonly #free: StatementSync;
  readonly #claimed: StatementSync;

  constructor(db: DatabaseSync, leases: LeaseTable, now: () => number) {
    this.#db = db;
    this.#leases = leases;
    this.#now = now;
    this.#waiting = db.prepare(
      `SELECT coalesce(paused_by, '${OTHER_KIND}') AS kind, count(*) AS count FROM due
       WHERE due_at > ? AND NOT ${GIVEN_BACK} GROUP BY kind`,
    );
    this.#parked = db.prepare("SELECT count(*) AS count FROM due WHERE due_at IS NULL AND paused_by = 'parked'");
    const sent = '(SELECT min(sent_at) FROM commands m WHERE m.run_id = d.run_id)';
    this.#free = db.prepare(
      `SELECT count(*) AS count, min(max(d.due_at, coalesce(h.updated_at, 0), coalesce(${sent}, 0))) AS since
       FROM due d LEFT JOIN claims c ON c.run_id = d.run_id LEFT JOIN heads h ON h.no = d.no
       WHERE d.due_at <= ? AND c.owner IS NULL`,
    );
    this.#claimed = db.prepare(
      `SELECT d.run_id, d.due_at, d.paused_by, c.owner, c.epoch, c.attempts, c.expires_at, c.boot, c.deployment, h.updated_at, ${sent} AS sent_at
       FROM due d JOIN claims c ON c.run_id = d.run_id LEFT JOIN heads h ON h.no = d.no
       WHERE (d.due_at <= ? OR (d.due_at IS NULL AND d.paused_by = 'hosted')) AND c.owner IS NOT NULL`,
    );
  }

  read(): RunCounts {
    const now = this.#now();
    const claimed = countAmong(this.#heads(now), now);
    const free = this.#free.get(now) as { count: number; since: number | null };
    const waiting = (this.#waiting.all(now) as { kind: string; count: number }[]).map(
      ({ kind, count }) => [kind, count] as const,
    );
    const { count: parked } = this.#parked.get() as { count: number };
    const due = claimed.due + free.count;
    const dueSince = Math.min(claimed.dueSince ?? now, free.since ?? now);
    return {
      ...{ now, live: claimed.live, due, waiting: Object.fromEntries(waiting), parked },
      ...(due > 0 ? { dueSince } : {}),
    };
  }

  storedRows(): StoredRows[] {
    return readRows(this.#db, this.#now());
  }

  *#heads(now: number) {
    const leaseNow = this.#leases.now();
    for (const row of this.#claimed.iterate(now) as unknown as Iterable<CountedRow>) {
      const { run_id: runId, due_at: due, owner, epoch, attempts } = row;
      const lease =
        epoch === null || attempts === null ? undefined : this.#leases.toLease({ ...row, owner, epoch, attempts });
      const times = { updatedAt: row.updated_at ?? 0, sentAt: row.sent_at ?? undefined, now: leaseNow };
      yield { runId, due, lease, ...times, pausedBy: row.paused_by ?? undefined, meta: '', head: '' };
    }
  }
}

/** The rows of the records of ended runs stay where they were. */
const kinds: readonly KindTables[] = [
  {
    kind: 'records',
    counted: [{ table: 'heads', at: 'updated_at' }],
    kept: { table: 'ended', until: 'keep_until' },
    tables: ['runs', 'heads', 'messages', 'claims', 'due', 'ended'],
  },
  {
    kind: 'outcomes',
    counted: [{ table: 'outcomes' }],
    kept: { table: 'outcomes', until: 'until' },
    tables: ['outcomes', 'deliveries'],
  },
  { kind: 'events', counted: [{ table: 'journal' }, { table: 'passing' }], tables: ['journal', 'passing'] },
  {
    kind: 'signals',
    counted: [{ table: 'signals' }],
    kept: { table: 'signals', until: 'until' },
    tables: ['signals', 'waits', 'commands'],
  },
  { kind: 'threads', counted: [{ table: 'threads', at: 'updated_at' }], tables: ['threads', 'thread_turns'] },
  { kind: 'audit', counted: [{ table: 'totals', at: 'unixepoch(day) * 1000' }], tables: ['totals'] },
];

/** Counts what a SQLite store holds. @param now wall clock, ms */
function readRows(db: DatabaseSync, now: number): StoredRows[] {
  const hasSizes = canSize(db);
  return kinds.map((kind) => {
    const names = kind.tables.map((table) => `'${table}'`).join(', ');
    const pages = `SELECT name FROM sqlite_schema WHERE tbl_name IN (${names})`;
    const bytes = hasSizes ? `(SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name IN (${pages}))` : 'NULL';
    const row = db.prepare(rowsQuery(kind, { now: String(now), bytes })).get();
    return storedRowsOf(kind.kind, row as unknown as RowsRow);
  });
}

/** Not every SQLite is built with the table of sizes. */
function canSize(db: DatabaseSync): boolean {
  const found = db.prepare(
    "SELECT 1 AS found FROM pragma_compile_options WHERE compile_options = 'ENABLE_DBSTAT_VTAB'",
  );
  return found.get() !== undefined;
}
