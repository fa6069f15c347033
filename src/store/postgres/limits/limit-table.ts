import { type BucketCharge, type ChargedBuckets, IDLE_MS, REMOVED_AT_ONCE } from '../../limits/buckets.ts';
import { Parameters } from '../parameters.ts';
import type { Session } from '../pool.ts';
import type { Server } from '../server.ts';

/**
 * Charges buckets in PostgreSQL, in one statement, by the clock of the server: `nextAfter` as SQL. Rows are locked in the order of the
 * charges, which is that of their ids. A statement that waited for a lock has an earlier `now`: then less may begin at once.
 */
export async function chargeBuckets(
  session: Session,
  { tables: { limits }, times }: Server,
  charges: readonly BucketCharge[],
): Promise<ChargedBuckets> {
  const parameters = new Parameters();
  const columns = { id: 'text', cost: 'float8', lag: 'float8', move: 'float8' } as const;
  const rows = charges.map(({ id, costMs, lagMs, moveMs }) => ({ id, cost: costMs, lag: lagMs, move: moveMs }));
  const text = `
    WITH now AS MATERIALIZED (SELECT ${times.due(parameters)}::float8 AS at),
    c AS MATERIALIZED (SELECT t.*, now.at - t.lag AS floor FROM ${parameters.table(columns, rows)}, now),
    gone AS (DELETE FROM ${limits} WHERE id IN (
      SELECT id FROM ${limits} WHERE idle_at < (SELECT at FROM now) - ${IDLE_MS} AND id NOT IN (SELECT id FROM c)
      ORDER BY idle_at LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)),
    charged AS (
      INSERT INTO ${limits} AS b (id, next_at, idle_at)
      SELECT id, floor + greatest(0, move) + cost, floor + greatest(0, move) + cost + lag FROM c ORDER BY id
      ON CONFLICT (id) DO UPDATE SET (next_at, idle_at) = (
        SELECT after.next, after.next + c.lag
        FROM c, LATERAL (SELECT greatest(c.floor, greatest(c.floor, b.next_at) + c.move) + c.cost AS next) after
        WHERE c.id = excluded.id)
      RETURNING id, next_at)
    SELECT charged.id, charged.next_at, now.at AS now FROM now LEFT JOIN charged ON true`;
  const found = await session.query(text, parameters.values);
  const next = new Map(found.map((row) => [row.id, Number(row.next_at)]));
  const now = Number(found[0]?.now);
  return { now, next: charges.map(({ id }) => next.get(id) ?? now) };
}
