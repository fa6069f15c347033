import { type DecideTurns, IDLE_MS, REMOVED_AT_ONCE } from '../../limits/buckets.ts';
import type { TakenTurns } from '../../limits/port.ts';
import { Parameters } from '../parameters.ts';
import { inTransaction, type PoolSession } from '../pool.ts';
import type { Server } from '../server.ts';

/** Charges buckets in PostgreSQL, in one transaction, by the clock of the server. Rows are locked in the order of their ids. */
export function chargeBuckets(
  session: PoolSession,
  { tables: { limits }, times }: Server,
  { ids, decide }: { readonly ids: readonly string[]; readonly decide: DecideTurns },
): Promise<TakenTurns> {
  return inTransaction(session, async () => {
    const locking = new Parameters();
    // A row that is not there yet is made, so that there is one to lock.
    const lock = `
      WITH now AS MATERIALIZED (SELECT ${times.due(locking)}::float8 AS at),
      gone AS (DELETE FROM ${limits} WHERE id IN (
        SELECT id FROM ${limits} WHERE idle_at < (SELECT at FROM now) - ${IDLE_MS}
          AND id <> ALL (${locking.add(ids)}::text[])
        ORDER BY idle_at LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)),
      locked AS (
        INSERT INTO ${limits} AS b (id, next_at, idle_at)
        SELECT id, '-Infinity', '-Infinity' FROM pg_catalog.unnest(${locking.add(ids)}::text[]) AS id ORDER BY id
        ON CONFLICT (id) DO UPDATE SET next_at = b.next_at
        RETURNING id, next_at)
      SELECT locked.id, locked.next_at, now.at AS now FROM now LEFT JOIN locked ON true`;
    const found = await session.query(lock, locking.values);
    const next = new Map(found.flatMap(({ id, next_at: at }) => (id == null ? [] : [[id, Number(at)] as const])));
    const { buckets, ...taken } = decide(next, Number(found[0]?.now));
    const storing = new Parameters();
    const columns = { id: 'text', next_at: 'float8', idle_at: 'float8' } as const;
    const rows = buckets.map(({ id, next: at, idleAt }) => ({ id, next_at: at, idle_at: idleAt }));
    await session.query(
      `UPDATE ${limits} AS b SET next_at = t.next_at, idle_at = t.idle_at FROM ${storing.table(columns, rows)} WHERE b.id = t.id`,
      storing.values,
    );
    return taken;
  });
}
