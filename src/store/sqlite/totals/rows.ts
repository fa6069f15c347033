import type { DatabaseSync } from 'node:sqlite';
import { type KindTables, type RowsRow, rowsQuery, type StoredRows, storedRowsOf } from '../../counting/rows.ts';

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
export function readRows(db: DatabaseSync, now: number): StoredRows[] {
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
