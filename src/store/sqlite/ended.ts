import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { type TotalsRange, type TotalsRow, totalColumns } from '../../record/totals.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { compareEnds } from '../cursor.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { EndedToKeep } from '../rules/decision.ts';
import type { EndedHead, EndedPage } from '../store-driver.ts';

interface EndedRow {
  readonly run_id: string;
  readonly ended_at: number;
  readonly checksum: number;
  readonly line: string;
}

/** Comes before every end, in the order of a list. */
const newest = { endedAt: Number.POSITIVE_INFINITY, runId: '' };

/** A page of ended runs. Those of equal times are in the order of their ids, and all others from the newest on. */
const pageOf = (filter: string) =>
  `SELECT run_id, ended_at, checksum, line FROM ended
   WHERE keep_until > $now AND ended_at <= $at AND NOT (ended_at = $at AND run_id <= $id) ${filter}
   ORDER BY ended_at DESC, run_id LIMIT $limit`;

/**
 * The rows of `ended`: what is kept of runs that ended, besides the rows of their records. The number is that of the record. One
 * whose time is over counts as removed.
 */
export class EndedTable {
  readonly #now: () => number;
  readonly #insert: StatementSync;
  readonly #expired: StatementSync;
  readonly #countExpired: StatementSync;
  readonly #all: StatementSync;
  readonly #ofAgent: StatementSync;
  readonly #ofCaller: StatementSync;
  readonly #ofBoth: StatementSync;
  readonly #count: StatementSync;
  readonly #totals: StatementSync;

  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#insert = db.prepare(
      `INSERT OR REPLACE INTO ended (no, run_id, ended_at, keep_until, epoch, agent, caller, checksum, line)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#expired = db.prepare('SELECT no, run_id FROM ended WHERE keep_until <= ? LIMIT ?');
    this.#countExpired = db.prepare('SELECT count(*) AS count FROM ended WHERE keep_until <= ?');
    this.#all = db.prepare(pageOf(''));
    this.#ofAgent = db.prepare(pageOf('AND agent IS $key'));
    this.#ofCaller = db.prepare(pageOf('AND caller IS $key'));
    this.#ofBoth = db.prepare(
      pageOf('AND caller IS $key AND (agent IS NULL OR agent IN (SELECT value FROM json_each($agents)))'),
    );
    const added = totalColumns.map((column) => `${column} = ${column} + excluded.${column}`);
    this.#count = db.prepare(
      `INSERT INTO totals (day, status, ${totalColumns.join(', ')}) VALUES (?, ?, ${totalColumns.map(() => '?').join(', ')})
       ON CONFLICT (day, status) DO UPDATE SET ${added.join(', ')}`,
    );
    this.#totals = db.prepare('SELECT * FROM totals WHERE day >= ?1 AND day <= ifnull(?2, day)');
  }

  put(runId: string, no: number, { text, agent, caller, keepUntil, epoch, totals }: EndedToKeep): void {
    this.#insert.run(no, runId, this.#now(), keepUntil, epoch, agent, caller, crc32(text), text);
    if (totals) this.#count.run(totals.day, totals.status, ...totals.sums);
  }

  totals({ from = '', to }: TotalsRange): TotalsRow[] {
    const rows = this.#totals.all(from, to ?? null) as unknown as (Omit<TotalsRow, 'sums'> & Record<string, number>)[];
    return rows.map((row) => ({
      day: row.day,
      status: row.status,
      sums: totalColumns.map((column) => row[column] ?? 0),
    }));
  }

  /** One search for each key: so each has its rows in order from an index. Null: they have no key. */
  page(page: EndedPage): EndedHead[] {
    const { agents, callers } = page;
    const keys = callers ?? agents;
    if (!keys) return this.#found(this.#all, page, {});
    const statement = callers && agents ? this.#ofBoth : callers ? this.#ofCaller : this.#ofAgent;
    const both = callers && agents ? { $agents: JSON.stringify(agents) } : {};
    const found = [...keys, null].flatMap((key) => this.#found(statement, page, { $key: key, ...both }));
    return found.sort(compareEnds).slice(0, page.limit);
  }

  #found(
    statement: StatementSync,
    { after = newest, limit }: EndedPage,
    keys: Readonly<Record<string, string | null>>,
  ): EndedHead[] {
    const at = { $now: this.#now(), $at: after.endedAt, $id: after.runId, $limit: limit };
    const rows = statement.all({ ...at, ...keys }) as unknown as EndedRow[];
    return rows.map(({ run_id: runId, ended_at: endedAt, checksum, line: text }) => {
      const error = new CheckpointCorruptError('this record is damaged: the checksum of its entry is wrong');
      return { runId, endedAt, text, ...(isIntact(text, checksum) ? {} : { error }) };
    });
  }

  /** Some of the runs whose time is over. */
  expired(limit: number): readonly { readonly no: number; readonly runId: string }[] {
    const rows = this.#expired.all(this.#now(), limit) as { no: number; run_id: string }[];
    return rows.map(({ no, run_id: runId }) => ({ no, runId }));
  }

  countExpired(): number {
    return Number(this.#countExpired.get(this.#now())?.count);
  }
}
