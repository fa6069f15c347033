import { type TotalsRange, type TotalsRow, totalColumns } from '../../../record/totals.ts';
import type { Parameters } from '../parameters.ts';
import type { PoolSession } from '../pool.ts';
import type { Tables } from '../schema.ts';

const columns = totalColumns.join(', ');
const sums = totalColumns.map((column) => `pg_catalog.sum(t.${column})`).join(', ');

/** What a change with the token of its row adds to the totals. */
interface Counted {
  readonly token: number;
  readonly totals: TotalsRow;
}

/**
 * Returns the part of a statement that adds the ended runs of stored changes to the totals. It adds rows, because the hosts that
 * end runs would wait for each other's change of one row. The sweep makes one row of them.
 */
export function totalsPut({ totals }: Tables, parameters: Parameters, counted: readonly Counted[]): string {
  const rows = counted.map(({ token, totals: { day, status, sums } }) => {
    return { token, day, status, ...Object.fromEntries(totalColumns.map((column, i) => [column, sums[i]])) };
  });
  const numbers = Object.fromEntries(totalColumns.map((column) => [column, 'float8' as const]));
  const table = parameters.table({ token: 'bigint', day: 'text', status: 'text', ...numbers }, rows);
  return `totals_put AS (INSERT INTO ${totals} (day, status, ${columns})
    SELECT t.day, t.status, ${sums} FROM ${table} JOIN landed USING (token) GROUP BY t.day, t.status)`;
}

/** Makes one row of the rows of each day and status. Of two hosts that do so at once, each takes other rows. */
export async function joinTotals(session: PoolSession, { totals }: Tables): Promise<void> {
  await session.query(
    `WITH t AS (DELETE FROM ${totals} WHERE no IN (SELECT no FROM ${totals} WHERE (day, status) IN
         (SELECT day, status FROM ${totals} GROUP BY day, status HAVING pg_catalog.count(*) > 1) FOR UPDATE SKIP LOCKED)
       RETURNING day, status, ${columns})
     INSERT INTO ${totals} (day, status, ${columns}) SELECT t.day, t.status, ${sums} FROM t GROUP BY t.day, t.status`,
    [],
  );
}

/** Reads the totals of days from PostgreSQL. */
export async function readTotals(
  session: PoolSession,
  { totals }: Tables,
  { from = '', to }: TotalsRange,
): Promise<TotalsRow[]> {
  const rows = await session.query(
    `SELECT t.day, t.status, ${totalColumns.map((column) => `pg_catalog.sum(t.${column}) AS ${column}`).join(', ')} FROM ${totals} t
     WHERE t.day >= $1::pg_catalog.text AND ($2::pg_catalog.text IS NULL OR t.day <= $2::pg_catalog.text) GROUP BY t.day, t.status`,
    [from, to ?? null],
  );
  return rows.map((row) => ({
    day: row.day ?? '',
    status: row.status ?? '',
    sums: totalColumns.map((column) => Number(row[column])),
  }));
}
