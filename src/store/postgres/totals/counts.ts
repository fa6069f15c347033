import { OTHER_KIND } from '../../counting/counts.ts';
import type { RunCounts } from '../../counting/port.ts';
import { Parameters } from '../parameters.ts';
import type { PoolSession } from '../pool.ts';
import { DAMAGED } from '../run-queries.ts';
import { GIVEN_BACK } from '../schema.ts';
import type { Server } from '../server.ts';

/**
 * Counts the runs in PostgreSQL by the index of their times. A run whose process died counts as live until its lease ends: another
 * host cannot know it.
 */
export async function readCounts(session: PoolSession, { tables, times }: Server): Promise<RunCounts> {
  const parameters = new Parameters();
  const { runs, commands } = tables;
  const now = times.due(parameters);
  const lease = times.lease(parameters);
  const waiting = `SELECT coalesce(paused_by, '${OTHER_KIND}') AS kind, pg_catalog.count(*) AS count FROM ${runs}
    WHERE body IS NOT NULL AND due_at > ${now} AND NOT ${GIVEN_BACK} GROUP BY 1`;
  const others = `SELECT due_at, updated_at, (SELECT pg_catalog.min(c.sent_at) FROM ${commands} c WHERE c.run_id = r.run_id) AS sent_at,
      CASE WHEN owner IS NOT NULL THEN ${now}::pg_catalog.float8 - (${lease} - expires_at) END AS held_until,
      owner IS NOT NULL AND expires_at > ${lease} AS held
    FROM ${runs} r WHERE body IS NOT NULL AND (due_at <= ${now} OR (due_at IS NULL AND paused_by = 'hosted'))
      AND (owner IS NULL OR NOT pg_catalog.starts_with(owner, '${DAMAGED}'))`;
  const [row] = await session.query(
    `SELECT ${now} AS now, o.live, o.due, o.since,
       (SELECT pg_catalog.count(*) FROM ${runs} WHERE body IS NOT NULL AND due_at IS NULL AND paused_by = 'parked') AS parked,
       (SELECT pg_catalog.json_object_agg(w.kind, w.count) FROM (${waiting}) w)::pg_catalog.text AS waiting
     FROM (SELECT pg_catalog.count(*) FILTER (WHERE held) AS live, pg_catalog.count(*) FILTER (WHERE NOT held AND due_at IS NOT NULL) AS due,
         pg_catalog.min(greatest(due_at::pg_catalog.float8, updated_at, sent_at, held_until)) FILTER (WHERE NOT held AND due_at IS NOT NULL) AS since
       FROM (${others}) f) o`,
    parameters.values,
  );
  const { live, due, since, parked, waiting: kinds } = row ?? {};
  const at = Number(row?.now);
  const oldest = since == null ? {} : { dueSince: Math.min(at, Number(since)) };
  const counts = { live: Number(live), due: Number(due), ...oldest, parked: Number(parked) };
  return { now: at, ...counts, waiting: JSON.parse(kinds ?? '{}') as RunCounts['waiting'] };
}
