import { CheckpointCorruptError } from '../../values/errors.ts';
import { compareEnds } from '../cursor.ts';
import { LONGEST_PAUSE_MS, type TakeDeliveries, type TakenDelivery } from '../deliveries/deliveries.ts';
import { isIntact } from '../encoding/checksum.ts';
import { decideNow } from '../rules/decision.ts';
import type { EndedHead, EndedPage, StoreWrite } from '../store-driver.ts';
import { NoAnswer } from './errors.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession } from './pool.ts';
import type { RowChange } from './row-change.ts';
import { factsFound, hexOf, look, runIdOfRow } from './run-row.ts';
import type { Tables } from './schema.ts';
import type { Server } from './server.ts';
import { journalsGone } from './write-statement.ts';

/** How many kept records one statement removes. */
const REMOVED_AT_ONCE = 20;

/**
 * The parts of a statement that remove what belongs to the rows of `gone`, which have `run_id` and `body`.
 * @param withJournal which of them lose their journals too: a condition
 */
function contentGone(tables: Tables, withJournal = 'true'): string {
  const parts = [tables.starts, tables.messages, tables.pieces].map(
    (table, i) => `part_${i}_gone AS (DELETE FROM ${table} p USING gone g WHERE p.body = g.body)`,
  );
  return [...parts, journalsGone(tables, `USING gone g WHERE j.run_id = g.run_id AND ${withJournal}`)].join(',\n');
}

/** Removes the kept records of earlier runs from PostgreSQL: new runs have their ids, or the same runs continue. */
export async function removeEnded(
  session: PoolSession,
  tables: Tables,
  replaced: readonly Pick<RowChange, 'runId' | 'keepsJournal'>[],
): Promise<void> {
  const idsIn = (parameter: string) =>
    `(SELECT pg_catalog.decode(id, 'hex') FROM pg_catalog.unnest(${parameter}::pg_catalog.text[]) AS i (id))`;
  const others = replaced.filter(({ keepsJournal }) => !keepsJournal);
  await session.query(
    `WITH gone AS (DELETE FROM ${tables.ended} WHERE run_id IN ${idsIn('$1')} RETURNING run_id, body),
     ${contentGone(tables, `g.run_id IN ${idsIn('$2')}`)} SELECT 1`,
    [replaced, others].map((runs) => runs.map(({ runId }) => hexOf(runId))),
  );
}

/** Removes some of the records whose time is over. @returns how many */
export async function removeExpired(session: PoolSession, { tables, times }: Server): Promise<number> {
  const rows = await session.query(
    `WITH gone AS (DELETE FROM ${tables.ended} WHERE run_id IN (SELECT run_id FROM ${tables.ended} WHERE keep_until <= $1::pg_catalog.float8
       ORDER BY keep_until LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED) RETURNING run_id, body),
     ${contentGone(tables)} SELECT pg_catalog.count(*) AS count FROM gone`,
    [times.wall()],
  );
  return Number(rows[0]?.count);
}

/** Counts the records whose time is over. */
export async function countExpired(session: PoolSession, { tables, times }: Server): Promise<number> {
  const text = `SELECT pg_catalog.count(*) AS count FROM ${tables.ended} WHERE keep_until <= $1::pg_catalog.float8`;
  const [row] = await session.query(text, [times.wall()]);
  return Number(row?.count);
}

/**
 * Removes all of a run from PostgreSQL in one statement, if its row is still that of the decision.
 * @throws what `decide` throws; NoAnswer if the row has changed: then it is tried again
 */
export async function eraseRows<T>(session: PoolSession, { tables, times }: Server, write: StoreWrite<T>): Promise<T> {
  const { runId, decide } = write;
  const found = (await look(session, [runId], { tables, times, withInbox: false })).get(runId);
  if (!found) throw new NoAnswer('the run was not read');
  const { value } = decideNow(decide, factsFound(found));
  const which = (alias: string) =>
    `${alias} WHERE ${alias}.run_id = pg_catalog.decode($1, 'hex') AND EXISTS (SELECT FROM free)`;
  const rows = await session.query(
    `WITH locked AS (SELECT token FROM ${tables.runs} WHERE run_id = pg_catalog.decode($1, 'hex') FOR UPDATE),
     free AS (SELECT 1 AS free WHERE NOT EXISTS (SELECT FROM locked WHERE token IS DISTINCT FROM $2::bigint)),
     run_gone AS (DELETE FROM ${tables.runs} ${which('r')} RETURNING run_id, body),
     ended_gone AS (DELETE FROM ${tables.ended} ${which('e')} RETURNING run_id, body),
     gone AS (SELECT run_id, body FROM run_gone UNION ALL SELECT run_id, body FROM ended_gone),
     outcome_gone AS (DELETE FROM ${tables.outcomes} ${which('o')}),
     commands_gone AS (DELETE FROM ${tables.commands} ${which('c')}),
     waits_gone AS (DELETE FROM ${tables.waits} ${which('w')}),
     ${contentGone(tables)} SELECT free FROM free`,
    [hexOf(runId), found.run?.token ?? null],
  );
  if (rows.length === 0) throw new NoAnswer('other transactions keep changing the run');
  return value;
}

/** Comes before every end, in the order of a list. */
const newest = { endedAt: Number.POSITIVE_INFINITY, runId: '' };

/**
 * Reads a page of ended runs from PostgreSQL. It searches once for each key, so that each has its rows in order from an index; rows
 * without a key are found too.
 */
export async function readEnded(
  session: PoolSession,
  { tables, times }: Server,
  { after = newest, limit, agents, callers }: EndedPage,
): Promise<EndedHead[]> {
  const parameters = new Parameters();
  const now = `${parameters.add(times.wall())}::pg_catalog.float8`;
  const at = `${parameters.add(after.endedAt)}::pg_catalog.float8`;
  const id = `pg_catalog.decode(${parameters.add(hexOf(after.runId))}, 'hex')`;
  const most = `${parameters.add(limit)}::bigint`;
  const keys = callers ?? agents;
  const column = callers ? 'caller' : 'agent';
  const both =
    callers && agents ? ` AND (agent IS NULL OR agent = ANY (${parameters.add(agents)}::pg_catalog.text[]))` : '';
  const wanted = keys
    ? [...keys.map((key) => ` AND ${column} = ${parameters.add(key)}::pg_catalog.text`), ` AND ${column} IS NULL`]
    : [''];
  const searches = wanted.map(
    (filter) => `(SELECT pg_catalog.encode(run_id, 'hex') AS id, ended_at, entry_checksum, entry FROM ${tables.ended}
      WHERE keep_until > ${now} AND (ended_at < ${at} OR (ended_at = ${at} AND run_id > ${id}))${filter}${both}
      ORDER BY ended_at DESC, run_id LIMIT ${most})`,
  );
  const rows = await session.query(searches.join(' UNION ALL '), parameters.values);
  const heads = rows.map((row) => {
    const text = row.entry ?? '';
    const error = new CheckpointCorruptError('this record is damaged: the checksum of its entry is wrong');
    const place = { runId: runIdOfRow(row.id ?? ''), endedAt: Number(row.ended_at) };
    return { ...place, text, ...(isIntact(text, row.entry_checksum) ? {} : { error }) };
  });
  return heads.sort(compareEnds).slice(0, limit);
}

/**
 * Takes ends that no process has delivered from PostgreSQL, in one statement: each process gets others. Each agent is searched in its
 * own order, so that a long list of one costs the others nothing.
 */
export async function takeDeliveries(
  session: PoolSession,
  { tables: { deliveries, outcomes }, times }: Server,
  { agents, limit, leaseMs }: TakeDeliveries,
): Promise<TakenDelivery[]> {
  const parameters = new Parameters();
  const now = `${times.due(parameters)}::pg_catalog.float8`;
  const most = `${parameters.add(limit)}::bigint`;
  const lease = `${parameters.add(leaseMs)}::pg_catalog.float8`;
  const pause = `greatest(${lease}, least(${LONGEST_PAUSE_MS}, ${lease} * 2 ^ least(d.tries, 20)))`;
  const rows = await session.query(
    `WITH found AS (SELECT f.run_id, f.outcome_id
       FROM pg_catalog.unnest(${parameters.add(agents)}::pg_catalog.text[]) WITH ORDINALITY AS k (agent, place),
       LATERAL (SELECT d.run_id, d.outcome_id, d.due_at FROM ${deliveries} d WHERE d.agent = k.agent AND d.due_at <= ${now}
         AND d.until > ${now} ORDER BY d.due_at LIMIT ${most} FOR UPDATE SKIP LOCKED) f
       ORDER BY k.place, f.due_at LIMIT ${most})
     UPDATE ${deliveries} d SET tries = d.tries + 1, due_at = ${now} + ${pause}
     FROM found f LEFT JOIN ${outcomes} o ON o.run_id = f.run_id AND o.until > ${now}
     WHERE d.run_id = f.run_id AND d.outcome_id = f.outcome_id
     RETURNING pg_catalog.encode(d.run_id, 'hex') AS id, pg_catalog.encode(d.outcome_id, 'hex') AS outcome_id, d.mark, o.outcome, o.checksum`,
    parameters.values,
  );
  return rows.map((row) => {
    const outcome = row.outcome ?? null;
    const isWhole = outcome !== null && isIntact(outcome, row.checksum ?? '');
    const id = Buffer.from(row.outcome_id ?? '', 'hex').toString();
    return { runId: runIdOfRow(row.id ?? ''), id, text: row.mark ?? '', outcome: isWhole ? outcome : null };
  });
}

/** Removes the mark of an end that is delivered. */
export async function markDelivered(
  session: PoolSession,
  { tables: { deliveries } }: Server,
  { runId, id }: { readonly runId: string; readonly id: string },
): Promise<void> {
  await session.query(
    `DELETE FROM ${deliveries} WHERE run_id = pg_catalog.decode($1, 'hex') AND outcome_id = pg_catalog.decode($2, 'hex')`,
    [hexOf(runId), hexOf(id)],
  );
}
