import { hash } from 'node:crypto';
import { ON_COMMAND } from '../../due.ts';
import type { TakeDue } from '../../store-driver.ts';
import { Parameters } from '../parameters.ts';
import type { PoolSession, Row } from '../pool.ts';
import { columns, DAMAGED, ofThisMachine, piecesOf } from '../run-queries.ts';
import { hexOf, ownerText } from '../run-row.ts';
import { GIVEN_BACK, HAS_TIME, HAS_TURN, IS_PARKED } from '../schema.ts';
import type { Server } from '../server.ts';

/** Up to this many due runs are compared with each other; of more only some of each key are read. */
const FEW = 512;

/** Processes that ask at once pass over each other's runs: this many may find enough. */
const AT_ONCE = 4;

/** A wish for due runs, as a statement gets it. */
export interface TakeWish extends TakeDue {
  /** The tokens of the taken rows. A row that has one already was taken by an attempt whose answer was lost. */
  readonly tokens: readonly number[];
  readonly isAgain: boolean;
  /** Owners that certainly are dead. */
  readonly dead: readonly string[];
  /** Runs whose records this process cannot read. */
  readonly skipped: readonly string[];
}

/** What a statement took. */
export interface TakenRows {
  /** Wall clock of the server, ms. */
  readonly now: number;
  /** When the next run after `now` is due. */
  readonly nextAt: number | null;
  /** How many runs the wish could have got. */
  readonly found: number;
  /** There are more runs than this statement compares: nothing was taken. */
  readonly isMany: boolean;
  /** Owners of this machine that hold due runs. */
  readonly owners: readonly string[];
  /** In the order of their turns. */
  readonly rows: readonly Row[];
}

/** Takes runs in PostgreSQL that the wish names, as far as they are due, in one statement. */
export function takeNamedRows(session: PoolSession, server: Server, wish: TakeWish): Promise<TakenRows> {
  const taking = takingOf(server, wish);
  const { isDue, isWished, isNamed } = taking;
  const lined = `lined AS (SELECT r.run_id, r.fair, pg_catalog.row_number() OVER (PARTITION BY r.fair ORDER BY r.due_at, r.run_id) AS k
      FROM ${server.tables.runs} r WHERE ${isNamed} AND r.body IS NOT NULL AND ${isDue} AND ${isWished})`;
  return readTaken(session, taking, { wish, lined, isMany: 'false' });
}

/** The parts of a statement that takes runs. */
interface Taking {
  readonly server: Server;
  readonly parameters: Parameters;
  readonly limit: string;
  /** Of rows `r`: they are due. */
  readonly isDue: string;
  /** Of rows `r`: they were parked for a definition of the wish; undefined = it has none. */
  readonly isFitting: string | undefined;
  /** The agents of the wish, as a list; undefined = any. */
  readonly agents: string | undefined;
  /** Of rows `r`: the wish names them. */
  readonly isNamed: string;
  /** Of rows `r`: the wish may get them. */
  readonly isWished: string;
  readonly tokens: string;
}

/** That a row `r` has a record, said so that no index with this condition is chosen instead of that of the agents. */
const HAS_RECORD = 'pg_catalog.num_nulls(r.body) <> 1';

/** A limit that the server does not see when it plans: for one that is near the size of the table it would read all of it. */
const hidden = (limit: number | string) => `(SELECT ${limit})`;

/** Takes due runs in PostgreSQL, unless there are many. All of it is one statement: what another one takes is passed over. */
export function takeOfFew(session: PoolSession, server: Server, wish: TakeWish): Promise<TakenRows> {
  const taking = takingOf(server, wish);
  const { isDue, isWished, agents } = taking;
  const { runs } = server.tables;
  // Rows that are held cost a look each: their number is bounded too.
  const columns = `r.run_id, r.fair, r.due_at, r.owner, r.expires_at, (${HAS_RECORD} AND ${isWished}) AS is_wished`;
  const due = (which: string) => `SELECT ${columns} FROM ${runs} r
      WHERE ${which} AND ${isDue} ORDER BY r.due_at, r.run_id LIMIT ${hidden(8 * FEW)}`;
  const looked = agents
    ? `SELECT l.* FROM ${agents} CROSS JOIN LATERAL (${due('r.agent = asked.agent')}) l`
    : due('r.body IS NOT NULL');
  const lined = `looked AS MATERIALIZED (${looked}),
    oldest AS MATERIALIZED (SELECT run_id, fair, due_at FROM looked WHERE is_wished ORDER BY due_at, run_id LIMIT ${FEW + 1}),
    many AS MATERIALIZED (SELECT pg_catalog.count(*) > ${FEW} OR (pg_catalog.count(*) < ${FEW} AND (SELECT pg_catalog.count(*) FROM looked) >= ${8 * FEW}) AS is_many
      FROM oldest),
    ${parked(taking, runs)},
    lined AS (SELECT run_id, fair, pg_catalog.row_number() OVER (PARTITION BY fair ORDER BY due_at, run_id) AS k
      FROM (SELECT * FROM oldest UNION ALL SELECT run_id, fair, 0 FROM parked) o WHERE NOT (SELECT is_many FROM many))`;
  return readTaken(session, taking, { wish, lined, isMany: '(SELECT is_many FROM many)', owners: 'looked' });
}

/** The part of a statement that finds runs which were parked for a definition of the wish. */
function parked({ isFitting, isWished }: Taking, runs: string): string {
  const found = `SELECT r.run_id, r.fair FROM ${runs} r WHERE ${isFitting ?? 'false'} AND ${HAS_RECORD} AND ${isWished} LIMIT ${FEW}`;
  return `parked AS MATERIALIZED (${isFitting ? found : `SELECT NULL::pg_catalog.bytea AS run_id, '' COLLATE "C" AS fair LIMIT 0`})`;
}

/**
 * Takes due runs in PostgreSQL where there are many, also in one statement. It jumps from key to key in an index, from the one
 * after the last turn on, and reads some runs of each. With agents it does so for each agent that has due runs.
 */
export function takeOfMany(session: PoolSession, server: Server, wish: TakeWish): Promise<TakenRows> {
  const taking = takingOf(server, wish);
  const { isDue, isWished, limit, agents } = taking;
  const { runs } = server.tables;
  const firstKey = (which: string) =>
    agents
      ? `(SELECT k.fair FROM present CROSS JOIN LATERAL (SELECT r.fair FROM ${runs} r
          WHERE ${HAS_TIME} AND r.agent = present.agent ${which} ORDER BY r.fair LIMIT 1) k ORDER BY k.fair LIMIT 1)`
      : `(SELECT r.fair FROM ${runs} r WHERE ${HAS_TURN} ${which} ORDER BY r.fair LIMIT 1)`;
  const next = (after: string) => firstKey(`AND r.fair > ${after}`);
  const due = (which: string, most: string) => `SELECT r.run_id, r.due_at FROM ${runs} r
      WHERE ${which} AND r.fair = key.fair AND ${isDue} AND ${isWished} ORDER BY r.due_at, r.run_id LIMIT ${most}`;
  const ofKey = (most: string) =>
    agents
      ? `(SELECT l.* FROM present CROSS JOIN LATERAL (${due(`${HAS_TIME} AND r.agent = present.agent AND ${HAS_RECORD}`, most)}) l
          ORDER BY l.due_at, l.run_id LIMIT ${most})`
      : `(${due(HAS_TURN, most)})`;
  const few = `(SELECT pg_catalog.count(*) FROM lines) <= ${limit}`;
  const present = `present AS MATERIALIZED (SELECT asked.agent FROM ${agents} WHERE EXISTS (SELECT FROM ${runs} r
      WHERE r.agent = asked.agent AND ${isDue})),`;
  const lined = `RECURSIVE ${agents ? present : ''} after AS (SELECT ${next('t.last')} AS fair FROM t
      UNION ALL SELECT ${next('a.fair')} FROM after a WHERE a.fair IS NOT NULL),
    around AS (SELECT ${firstKey('')} AS fair UNION ALL SELECT ${next('a.fair')} FROM around a, t WHERE a.fair < t.last),
    lines AS MATERIALIZED (SELECT key.fair, line.run_id FROM (SELECT fair FROM after WHERE fair IS NOT NULL
        UNION ALL SELECT a.fair FROM around a, t WHERE a.fair <= t.last) key
      CROSS JOIN LATERAL ${ofKey('1')} line LIMIT greatest(64, least(256, ${AT_ONCE} * ${limit}))),
    ${parked(taking, runs)},
    lined AS (SELECT run_id, fair, 1 AS k FROM lines WHERE NOT (${few})
      UNION ALL SELECT line.run_id, key.fair, pg_catalog.row_number() OVER (PARTITION BY key.fair ORDER BY line.due_at, line.run_id)
      FROM lines key CROSS JOIN LATERAL ${ofKey(`(SELECT ${limit} + ${AT_ONCE} * ${limit} / greatest(pg_catalog.count(*), 1) + 1 FROM lines)`)} line
      WHERE ${few}
      UNION ALL SELECT run_id, fair, pg_catalog.row_number() OVER (PARTITION BY fair ORDER BY run_id) FROM parked)`;
  return readTaken(session, taking, { wish, lined });
}

function takingOf(server: Server, wish: TakeWish): Taking {
  const { times } = server;
  const parameters = new Parameters();
  const add = (value: unknown, type: string) => `${parameters.add(value)}::${type}`;
  const limit = add(wish.limit, 'bigint');
  const tokens = add(wish.tokens, 'bigint[]');
  const isFree = [
    'r.owner IS NULL',
    `(NOT pg_catalog.starts_with(r.owner, '${DAMAGED}') AND (r.expires_at <= ${times.lease(parameters)} OR
      r.owner = ANY (${add(wish.dead.map(ownerText), 'text[]')})))`,
    ...(wish.isAgain ? [`r.token = ANY (${tokens})`] : []),
  ];
  const isWished = [
    `(${isFree.join(' OR ')})`,
    ...(wish.runIds && wish.agents ? [`r.agent = ANY (${add(['', ...wish.agents], 'text[]')})`] : []),
    ...(wish.fullKeys.length > 0 ? [`r.fair <> ALL (${add(wish.fullKeys, 'text[]')})`] : []),
    ...(wish.deployment === undefined
      ? []
      : [`(r.deployment IS NULL OR r.deployment <= ${add(wish.deployment, 'numeric')})`]),
    ...(wish.skipped.length > 0
      ? [`pg_catalog.encode(r.run_id, 'hex') <> ALL (${add(wish.skipped.map(hexOf), 'text[]')})`]
      : []),
  ].join(' AND ');
  const isTime = `r.due_at <= ${times.due(parameters)}`;
  const { agents, definitions = [] } = wish;
  if (!wish.runIds) {
    // Rows of an earlier layout have no agent.
    const list = agents && add(['', ...agents], 'text[]');
    const isOfAgents = list ? `AND r.agent = ANY (${list})` : '';
    const isFitting =
      definitions.length > 0
        ? `${IS_PARKED} AND r.definition = ANY (${add(definitions, 'text[]')}) ${isOfAgents}`
        : undefined;
    const asked = list && `pg_catalog.unnest(${list}) asked(agent)`;
    return { server, parameters, limit, tokens, isDue: isTime, isFitting, agents: asked, isNamed: 'true', isWished };
  }
  // By the primary key. The pause of a run that was given back is not for those that ask for it.
  const named = add([...wish.runIds].map(hexOf), 'text[]');
  const isNamed = `r.run_id IN (SELECT pg_catalog.decode(id, 'hex') FROM pg_catalog.unnest(${named}) id)`;
  const isDue = `(${isTime} OR (r.due_at < ${ON_COMMAND} AND ${GIVEN_BACK}))`;
  return { server, parameters, limit, tokens, isDue, isFitting: undefined, agents: undefined, isNamed, isWished };
}

/** How a statement finds the runs that it may take. */
interface Finding {
  readonly wish: TakeWish;
  /** Its parts, the last one of which is `lined`: runs, with their places in the lines of their keys. */
  readonly lined: string;
  readonly isMany?: string;
  /** The part that has the owners of due runs. Absent: they are read, unless `isMany` is absent too. */
  readonly owners?: string;
}

/** Locks and claims runs in their turns. A row that has changed meanwhile is looked at again, and one that is locked is passed over. */
async function readTaken(
  session: PoolSession,
  { server: { tables, times }, parameters, limit, tokens, isDue, isFitting = 'false', isNamed, isWished }: Taking,
  { wish, lined, isMany, owners: held }: Finding,
): Promise<TakenRows> {
  const { runs, starts, outcomes, ended, lastTurn } = tables;
  const add = (value: unknown, type: string) => `${parameters.add(value)}::${type}`;
  const now = times.due(parameters);
  const wall = add(times.wall(), 'float8');
  const isMine = wish.isAgain ? `r.token = ANY (${tokens})` : 'false';
  const isRecursive = lined.startsWith('RECURSIVE ');
  const keptEpoch = `greatest((SELECT o.epoch FROM ${outcomes} o WHERE o.run_id = r.run_id AND o.until > ${wall}),
    (SELECT e.epoch FROM ${ended} e WHERE e.run_id = r.run_id AND e.keep_until > ${wall}), 0)`;
  const deployment =
    wish.deployment === undefined ? 'r.deployment' : `greatest(r.deployment, ${add(wish.deployment, 'numeric')})`;
  const some = `SELECT r.owner, r.expires_at, r.due_at, r.run_id FROM ${runs} r WHERE ${isNamed} AND r.body IS NOT NULL AND ${isDue}`;
  const owners =
    () => `(SELECT pg_catalog.json_agg(DISTINCT h.owner) FROM (SELECT owner, expires_at FROM ${held ?? `(${some}) s`}
      ORDER BY due_at, run_id LIMIT ${wish.runIds?.size ?? FEW}) h
    WHERE pg_catalog.starts_with(h.owner, ${add(ofThisMachine(), 'text')}) AND h.expires_at > ${times.lease(parameters)})`;
  const most = wish.runIds ? wish.runIds.size : `greatest(64, ${AT_ONCE} * ${limit})`;
  const text = `WITH ${isRecursive ? 'RECURSIVE ' : ''}t AS (SELECT coalesce((SELECT fair FROM ${lastTurn} WHERE no = 1), '') COLLATE "C" AS last),
     ${isRecursive ? lined.slice('RECURSIVE '.length) : lined},
     first AS MATERIALIZED (SELECT l.* FROM lined l, t ORDER BY l.k, l.fair <= t.last, l.fair LIMIT ${hidden(most)}),
     locked AS (SELECT r.run_id, l.fair, l.k FROM first l JOIN ${runs} r ON r.run_id = l.run_id, t
       WHERE r.body IS NOT NULL AND (${isDue} OR (${isFitting})) AND ${isWished}
       ORDER BY l.k, l.fair <= t.last, l.fair LIMIT ${limit} FOR UPDATE OF r SKIP LOCKED),
     picked AS (SELECT run_id, fair, pg_catalog.row_number() OVER (ORDER BY k, fair <= last, fair) AS place FROM locked, t),
     granted AS (UPDATE ${runs} r SET token = CASE WHEN ${isMine} THEN r.token ELSE (${tokens})[p.place] END,
         owner = ${add(ownerText(wish.owner), 'text')}, expires_at = ${times.lease(parameters)} + ${add(wish.ttlMs, 'float8')},
         epoch = coalesce(r.epoch, ${keptEpoch}) + CASE WHEN ${isMine} THEN 0 ELSE 1 END,
         attempts = r.attempts + CASE WHEN ${isMine} THEN 0 ELSE 1 END, deployment = ${deployment}
       FROM picked p WHERE r.run_id = p.run_id RETURNING r.*, p.place),
     turned AS (INSERT INTO ${lastTurn} (no, fair) SELECT 1, p.fair FROM picked p, t
       WHERE p.place = (SELECT pg_catalog.max(place) FROM picked) AND p.fair <> t.last
       ON CONFLICT (no) DO UPDATE SET fair = excluded.fair)
     SELECT a.*, g.* FROM (SELECT ${now} AS due_now, ${isMany ?? false} AS is_many, (SELECT pg_catalog.count(*) FROM lined) AS found,
         (SELECT pg_catalog.min(r.due_at) FROM ${runs} r WHERE r.body IS NOT NULL AND r.due_at > ${now}) AS next_at,
         ${isMany === undefined ? 'NULL' : owners()} AS owners) a
     LEFT JOIN (SELECT r.place, ${columns}, ${piecesOf(tables, 'r')}, ${times.lease(parameters)} AS now
       FROM granted r LEFT JOIN ${starts} s ON s.body = r.body) g ON true ORDER BY g.place`;
  // Planning takes as long as the work. A statement with more parts is rare.
  const isUsual = !wish.isAgain && wish.skipped.length === 0;
  const name = isUsual ? `pawl_${hash('sha1', text)}` : '';
  const { values } = parameters;
  const rows = await (isUsual ? session.rows({ text, name }, values) : session.query(text, values));
  const [row = {}] = rows;
  return {
    now: Number(row.due_now),
    nextAt: row.next_at == null ? null : Number(row.next_at),
    found: Number(row.found),
    isMany: row.is_many === 't' || row.is_many === 'true',
    owners: ((JSON.parse(row.owners ?? 'null') ?? []) as string[]).map((owner) => String(JSON.parse(owner))),
    rows: rows.filter(({ id }) => id != null),
  };
}
