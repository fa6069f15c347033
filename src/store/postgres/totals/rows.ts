import { type KindTables, type RowsRow, rowsQuery, type StoredRows, storedRowsOf } from '../../counting/rows.ts';
import type { PoolSession } from '../pool.ts';
import type { Tables } from '../schema.ts';
import type { Server } from '../server.ts';

const kindsIn = (tables: Tables): readonly KindTables[] => [
  {
    kind: 'records',
    counted: [
      { table: tables.runs, at: 'updated_at', where: 'body IS NOT NULL' },
      { table: tables.ended, at: 'ended_at' },
    ],
    kept: { table: tables.ended, until: 'keep_until' },
    tables: [tables.runs, tables.starts, tables.messages, tables.pieces, tables.ended],
  },
  {
    kind: 'outcomes',
    counted: [{ table: tables.outcomes }],
    kept: { table: tables.outcomes, until: 'until' },
    tables: [tables.outcomes, tables.deliveries],
  },
  {
    kind: 'events',
    counted: [{ table: tables.journal }, { table: tables.passing }],
    tables: [tables.journal, tables.passing],
  },
  {
    kind: 'signals',
    counted: [{ table: tables.signals }],
    kept: { table: tables.signals, until: 'until' },
    tables: [tables.signals, tables.waits, tables.commands],
  },
  {
    kind: 'threads',
    counted: [{ table: tables.threads, at: 'updated_at' }],
    tables: [tables.threads, tables.turns],
  },
  {
    kind: 'audit',
    counted: [{ table: tables.totals, at: 'extract(epoch FROM day::pg_catalog.date) * 1000' }],
    tables: [tables.totals],
  },
];

/** Counts what a PostgreSQL store holds. */
export async function readRows(session: PoolSession, { tables, times }: Server): Promise<StoredRows[]> {
  const rows: StoredRows[] = [];
  const now = `${times.wall()}::pg_catalog.float8`;
  for (const kind of kindsIn(tables)) {
    const bytes = kind.tables.map((table) => `pg_catalog.pg_total_relation_size('${table}'::pg_catalog.regclass)`);
    const [row] = await session.query(rowsQuery(kind, { now, bytes: bytes.join(' + '), prefix: 'pg_catalog.' }), []);
    rows.push(storedRowsOf(kind.kind, row as unknown as RowsRow));
  }
  return rows;
}
