import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { JournalRow, StoredJournal } from '../encoding/stored-journal.ts';
import type { Claim } from '../port.ts';
import { checkClaim } from '../rules/lease.ts';
import type { RowsPage } from '../store-driver.ts';
import type { Tables } from './writes.ts';

interface StoredRow {
  readonly place: number;
  readonly is_kept: number;
  readonly checksum: number;
  readonly entries: string;
}

/**
 * The journals of runs in SQLite: the rows of `journal`, and of `passing`, which lose theirs with each step. `RecordTable` removes
 * them with their record.
 */
export class JournalTables {
  readonly #put: { readonly kept: StatementSync; readonly passing: StatementSync };
  readonly #drop: StatementSync;
  readonly #read: StatementSync;
  readonly #newest: StatementSync;

  constructor(db: DatabaseSync) {
    const put = (table: string) =>
      db.prepare(`INSERT OR REPLACE INTO ${table} (no, place, checksum, entries) VALUES (?, ?, ?, ?)`);
    this.#put = { kept: put('journal'), passing: put('passing') };
    this.#drop = db.prepare('DELETE FROM passing WHERE no = ? AND place <= ?');
    const rows = (table: string, isKept: number) =>
      `SELECT * FROM (SELECT place, ${isKept} AS is_kept, checksum, entries FROM ${table}
         WHERE no = $no AND place > $after ORDER BY place LIMIT $limit)`;
    this.#newest = db.prepare('SELECT place FROM journal WHERE no = ? ORDER BY place DESC LIMIT 1 OFFSET ?');
    this.#read = db.prepare(`${rows('journal', 1)} UNION ALL ${rows('passing', 0)} ORDER BY place LIMIT $limit`);
  }

  /** Adds to the journal of a record. @param no the number of the record */
  add(no: number, { rows, dropTo }: StoredJournal): void {
    if (dropTo !== undefined) this.#drop.run(no, dropTo);
    for (const { place, isKept, text } of rows)
      this.#put[isKept ? 'kept' : 'passing'].run(no, place, crc32(text), text);
  }

  /** The rows after a place. @throws {CHECKPOINT_CORRUPT} */
  read(no: number, { after, limit, newest }: RowsPage): JournalRow[] {
    const before = newest === undefined ? undefined : this.#newest.get(no, newest);
    const from = Math.max(after, Number(before?.place ?? 0));
    const rows = this.#read.all({ $no: no, $after: from, $limit: limit }) as unknown as StoredRow[];
    return rows.map(({ place, is_kept, checksum, entries }) => {
      if (!isIntact(entries, checksum))
        throw new CheckpointCorruptError('this record is damaged: the checksum of its journal is wrong');
      return { place, isKept: is_kept === 1, text: entries };
    });
  }
}

/** Adds rows to the journal of a run, in the transaction of its caller: see `JournalDriver`. @throws {LEASE_LOST} */
export function publishIn(
  { leases, records, journals }: Tables,
  { claim, rows }: { readonly claim: Claim; readonly rows: readonly JournalRow[] },
): void {
  checkClaim(leases.find(claim.runId), claim);
  const stored = records.find(claim.runId);
  if (stored) journals.add(stored.no, { rows });
}
