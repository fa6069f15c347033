import { crc32 } from 'node:zlib';
import { DAMAGED_TEXT } from '../../commands.ts';
import { isIntact } from '../../encoding/checksum.ts';
import { decideNow, type RecordFacts } from '../../rules/decision.ts';
import type { ThreadChange, ThreadFacts, ThreadRow, TurnQuery, TurnRow, TurnState } from '../../rules/thread-rows.ts';
import type { ForkWrite, ListedThread, StoreWrite, ThreadPage, ThreadWrite } from '../../store-driver.ts';
import { eraseRows } from '../ended.ts';
import { NoAnswer } from '../errors.ts';
import { sendRow } from '../inboxes.ts';
import { Parameters } from '../parameters.ts';
import { inLockedTransaction, type PoolSession, type Row } from '../pool.ts';
import { recordAfter, rowChange } from '../row-change.ts';
import { type FoundRow, factsFound, hexOf, look, runIdOfRow } from '../run-row.ts';
import type { Tables } from '../schema.ts';
import type { Server } from '../server.ts';
import { type SentWrite, write as writeRuns } from '../write-statement.ts';

/** A transaction that has the locks of threads: all others of these threads wait. */
interface Locked {
  readonly session: PoolSession;
  readonly server: Server;
  readonly query: (text: string, ...values: unknown[]) => Promise<Row[]>;
}

const turnColumns = `t.message, t.state, t.place, pg_catalog.encode(t.run_id, 'hex') AS run_id, t.first, t.count, t.checksum, t.content, t.compaction`;
const begun = `t.state IN ('live', 'ended')`;
const waiting = `t.state IN ('queued', 'steered')`;
/** Of one run the messages that it has taken come before the run. */
const newestFirst = `t.place DESC, (t.state = 'taken') DESC`;

/** The conditions of the queries, behind that of the thread, which is `$1`. */
const queries: { readonly [Kind in TurnQuery['kind']]: string } = {
  begun: `AND ${begun} AND t.place >= $2::bigint ORDER BY t.place LIMIT $3::bigint`,
  newest: `AND ${begun} ORDER BY ${newestFirst} LIMIT $2::bigint`,
  last: `AND NOT ${waiting} AND t.place >= $2::bigint ORDER BY ${newestFirst} LIMIT $3::bigint`,
  waiting: `AND ${waiting} LIMIT $2::bigint`,
  message: 'AND t.message = ANY ($2::pg_catalog.text[])',
  run: `AND t.state <> 'taken' AND t.run_id = pg_catalog.decode($2, 'hex')`,
  at: `AND ${begun} AND t.first <= $2::bigint ORDER BY t.place DESC LIMIT 1`,
  compacted: `AND t.state = 'ended' AND t.compaction IS NOT NULL AND t.first + t.count <= $2::bigint ORDER BY t.place DESC LIMIT 1`,
};

/** Reads turns of a thread from PostgreSQL. Null: there is no such thread. */
export async function readTurns(
  session: PoolSession,
  { tables }: Server,
  { threads, query }: { readonly threads: readonly string[]; readonly query: TurnQuery },
): Promise<TurnRow[] | null> {
  const [thread] = await session.query(`SELECT no FROM ${tables.threads} WHERE thread = ANY ($1::pg_catalog.text[])`, [
    threads,
  ]);
  if (!thread) return null;
  const { kind, ...given } = query;
  const values = Object.entries(given).map(([name, value]) => (name === 'runId' ? hexOf(String(value)) : value));
  const rows = await session.query(turnsOf(tables, queries[kind]), [thread.no, ...values]);
  return rows.map(turnRow);
}

/** Reads the queued turn of a run from PostgreSQL, in any thread. */
export async function readQueued(session: PoolSession, { tables }: Server, runId: string): Promise<TurnRow | null> {
  const [row] = await session.query(
    `SELECT ${turnColumns} FROM ${tables.turns} t WHERE t.run_id = pg_catalog.decode($1, 'hex') AND t.state = 'queued' LIMIT 1`,
    [hexOf(runId)],
  );
  return row ? turnRow(row) : null;
}

const turnsOf = ({ turns }: Tables, rest: string) =>
  `SELECT ${turnColumns} FROM ${turns} t WHERE t.thread = $1::bigint ${rest}`;

/** Reads a page of threads from PostgreSQL. */
export async function readThreads(session: PoolSession, { tables }: Server, page: ThreadPage): Promise<ListedThread[]> {
  const { callers, after, heldUp, limit } = page;
  const { threads, turns, runs } = tables;
  const parameters = new Parameters();
  const conditions = [
    ...(callers ? [`h.caller = ANY (${parameters.add(callers)}::pg_catalog.text[])`] : []),
    ...(after
      ? [
          `(h.updated_at, h.thread) < (${parameters.add(after.updatedAt)}::pg_catalog.float8, ${parameters.add(after.thread)})`,
        ]
      : []),
    ...(heldUp
      ? [
          `EXISTS (SELECT FROM ${turns} t WHERE t.thread = h.no AND ${waiting})`,
          `h.no IN (SELECT t.thread FROM ${runs} r JOIN ${turns} t ON t.run_id = r.run_id AND t.state = 'live'
             WHERE r.body IS NOT NULL AND r.due_at IS NULL)`,
        ]
      : []),
  ];
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  const rows = await session.query(
    `SELECT h.*, (SELECT pg_catalog.encode(t.run_id, 'hex') FROM ${turns} t WHERE t.thread = h.no AND t.state = 'live') AS live,
       (SELECT pg_catalog.count(*) FROM ${turns} t WHERE t.thread = h.no AND ${waiting}) AS queued
     FROM ${threads} h ${where} ORDER BY h.updated_at DESC, h.thread DESC LIMIT ${parameters.add(limit)}::bigint`,
    parameters.values,
  );
  return rows.map((row) => ({
    ...threadRow(row),
    live: row.live == null ? undefined : runIdOfRow(row.live),
    queued: Number(row.queued),
  }));
}

/**
 * Makes a write to a thread in PostgreSQL, with those to its runs, in one transaction. It may be repeated.
 * @throws what `decide` throws; NoAnswer if a run has changed meanwhile: then it is tried again
 */
export async function writeThread<T>(session: PoolSession, server: Server, write: ThreadWrite<T>): Promise<T> {
  return withThreads(session, { server, threads: write.threads }, async (locked) => {
    const found = await findThread(locked, write.threads);
    const ending = write.end && (await decideRun(locked, write.end));
    const { value, change } = await decide(locked, write, { found, ended: ending && endedIn(ending) });
    const writes = [...(change?.writes ?? [])];
    const others = writes.filter(({ command }) => command === undefined);
    const runs = [...(ending ? [ending] : []), ...(await Promise.all(others.map((each) => decideRun(locked, each))))];
    await makeRuns(locked, runs);
    for (const { command } of writes) if (command) await sendRow(session, server, { command, isAgain: false });
    for (const gone of await toErase(locked, change, found?.no)) await eraseRows(session, server, gone);
    if (change) await changeThread(locked, change, found?.no);
    return value;
  });
}

/** Makes a fork in PostgreSQL. It may be repeated. */
export async function forkThread(session: PoolSession, server: Server, fork: ForkWrite): Promise<void> {
  const { threads, newThreads, decide } = fork;
  await withThreads(session, { server, threads: [...threads, ...newThreads] }, async (locked) => {
    const source = await findThread(locked, threads);
    const row = decide(source?.row ?? null, (await findThread(locked, newThreads))?.row ?? null);
    if (!row || !source) return;
    const { turns } = server.tables;
    const no = await putThread(locked, row, undefined);
    const shared = 'message, state, place, run_id, first, count, checksum, content, compaction';
    await locked.query(
      `INSERT INTO ${turns} (thread, ${shared}) SELECT $1::bigint, ${shared} FROM ${turns}
       WHERE thread = $2::bigint AND state IN ('ended', 'taken') AND place < $3::bigint`,
      ...[no, source.no, row.turns],
    );
  });
}

interface FoundThread {
  readonly no: string;
  readonly row: ThreadRow;
}

async function findThread({ query, server }: Locked, threads: readonly string[]): Promise<FoundThread | undefined> {
  const [row] = await query(
    `SELECT * FROM ${server.tables.threads} WHERE thread = ANY ($1::pg_catalog.text[]) FOR UPDATE`,
    threads,
  );
  return row && { no: String(row.no), row: threadRow(row) };
}

/** A decision needs facts of a run that were not read. */
class MissingRun {
  readonly runId: string;

  constructor(runId: string) {
    this.runId = runId;
  }
}

interface Given {
  readonly found: FoundThread | undefined;
  readonly ended: RecordFacts | undefined;
}

/** Decides. The facts of a run are read when the decision asks for them: then it is made again. */
async function decide<T>(locked: Locked, { messages, decide }: ThreadWrite<T>, { found, ended }: Given) {
  const known = new Map<string, { readonly hasRecord: boolean; readonly isKnown: boolean }>();
  const runOf = (runId: string) => {
    const run = known.get(runId);
    if (run) return run;
    throw new MissingRun(runId);
  };
  const turns = await turnFacts(locked, found?.no, messages);
  const facts: ThreadFacts = {
    ...turns,
    thread: found?.row ?? null,
    hasRecord: (runId) => runOf(runId).hasRecord,
    isKnown: (runId) => runOf(runId).isKnown,
  };
  for (;;) {
    try {
      return decide(facts, ended);
    } catch (missing) {
      if (!(missing instanceof MissingRun)) throw missing;
      known.set(missing.runId, await runFacts(locked, missing.runId));
    }
  }
}

async function runFacts({ session, server, query }: Locked, runId: string) {
  const { tables, times } = server;
  const found = (await look(session, [runId], { tables, times, withInbox: false })).get(runId);
  const used = await query(
    `SELECT 1 AS one FROM ${tables.turns} WHERE run_id = pg_catalog.decode($1, 'hex') LIMIT 1`,
    hexOf(runId),
  );
  const hasRecord = found?.run?.record !== undefined;
  const isLeft = found?.endedBody !== undefined || (found?.outcomeEpoch ?? 0) > 0;
  return { hasRecord, isKnown: hasRecord || isLeft || used.length > 0 };
}

async function turnFacts(
  { query, server }: Locked,
  no: string | undefined,
  messages: readonly string[],
): Promise<Pick<ThreadFacts, 'turn' | 'live' | 'next' | 'steered' | 'queue'>> {
  const queue = { count: 0, lowest: 0, highest: 0 };
  if (no === undefined) return { turn: null, live: null, next: null, steered: [], queue };
  const { tables } = server;
  const wanted = `t.message = ANY ($2::pg_catalog.text[]) OR t.state IN ('live', 'steered') OR t.message = (SELECT n.message
    FROM ${tables.turns} n WHERE n.thread = $1::bigint AND n.state = 'queued' ORDER BY n.place LIMIT 1)`;
  const rows = (await query(turnsOf(tables, `AND (${wanted}) ORDER BY t.place`), no, messages)).map(turnRow);
  const [counted] = await query(
    `SELECT pg_catalog.count(*) AS count, pg_catalog.min(place) AS lowest, pg_catalog.max(place) AS highest FROM ${tables.turns} t
     WHERE t.thread = $1::bigint AND ${waiting}`,
    no,
  );
  return {
    turn: rows.find(({ message }) => messages.includes(message)) ?? null,
    live: rows.find(({ state }) => state === 'live') ?? null,
    next: rows.find(({ state }) => state === 'queued') ?? null,
    steered: rows.filter(({ state }) => state === 'steered'),
    queue: {
      count: Number(counted?.count ?? 0),
      lowest: Number(counted?.lowest ?? 0),
      highest: Number(counted?.highest ?? 0),
    },
  };
}

/** A decided write to a run, as it is sent; `sent` is undefined if it changes nothing. */
interface DecidedRun {
  readonly found: FoundRow;
  readonly sent: SentWrite | undefined;
}

/** Decides a write of a run from its state in PostgreSQL, inside a transaction. @throws what `decide` throws */
export async function decideRun(
  { session, server }: Pick<Locked, 'session' | 'server'>,
  { runId, decide, body }: StoreWrite<unknown>,
): Promise<DecidedRun> {
  const { tables, times } = server;
  const found = (await look(session, [runId], { tables, times, withInbox: false })).get(runId);
  if (!found) throw new NoAnswer('the run was not read');
  const { change: wanted } = decideNow(decide, factsFound(found));
  const change = wanted && rowChange(found.run, wanted, { runId, body, endedBody: found.endedBody });
  if (!change) return { found, sent: undefined };
  const token = Math.floor(Math.random() * 2 ** 53);
  return { found, sent: { change, token, record: recordAfter(change, token) } };
}

function endedIn({ found, sent }: DecidedRun): RecordFacts | undefined {
  if (!sent) return undefined;
  const { version = 0, revision = 0, messageCount = 0 } = found.run?.record ?? {};
  return { version, revision, messageCount };
}

/** Writes decided changes of runs. @throws {NoAnswer} if another transaction has changed one of the runs */
export async function makeRuns(
  { session, server }: Pick<Locked, 'session' | 'server'>,
  runs: readonly DecidedRun[],
): Promise<void> {
  const sent = runs.flatMap((run) => (run.sent ? [run.sent] : []));
  if (sent.length === 0) return;
  const landed = await writeRuns(session, sent, server);
  if (landed.size < sent.length) throw new NoAnswer('other transactions keep changing the run');
}

/** The runs that are turns of no other thread. */
async function toErase(
  { query, server }: Locked,
  { erase: asked = [] }: ThreadChange<StoreWrite<unknown>> = {},
  no: string | undefined,
): Promise<StoreWrite<unknown>[]> {
  if (asked.length === 0 || no === undefined) return [];
  const ids = asked.map(({ runId }) => hexOf(runId));
  const rows = await query(
    `SELECT DISTINCT pg_catalog.encode(run_id, 'hex') AS id FROM ${server.tables.turns} t
     WHERE t.run_id IN (SELECT pg_catalog.decode(i.id, 'hex') FROM pg_catalog.unnest($1::pg_catalog.text[]) AS i (id)) AND t.thread <> $2::bigint`,
    ids,
    no,
  );
  const used = new Set(rows.map(({ id }) => id));
  return asked.filter(({ runId }) => !used.has(hexOf(runId)));
}

async function changeThread(locked: Locked, change: ThreadChange, found: string | undefined): Promise<void> {
  const { query, server } = locked;
  const { threads, turns: table } = server.tables;
  const { thread, turns = [], remove = [] } = change;
  if (thread === 'remove') {
    if (found !== undefined) await query(`DELETE FROM ${threads} WHERE no = $1::bigint`, found);
    return;
  }
  const no = thread ? await putThread(locked, thread, found) : found;
  if (no === undefined) return;
  if (remove.length > 0) {
    await query(`DELETE FROM ${table} WHERE thread = $1::bigint AND message = ANY ($2::pg_catalog.text[])`, no, remove);
  }
  for (const turn of turns) await putTurn(locked, no, turn);
}

async function putThread({ query, server }: Locked, row: ThreadRow, no: string | undefined): Promise<string> {
  const { thread, caller, updatedAt, turns, length, rewinds, text } = row;
  const { threads } = server.tables;
  if (no !== undefined) {
    const set = 'updated_at = $2::pg_catalog.float8, turns = $3::bigint, length = $4::bigint, rewinds = $5::bigint';
    await query(`UPDATE ${threads} SET ${set} WHERE no = $1::bigint`, no, updatedAt, turns, length, rewinds);
    return no;
  }
  const [added] = await query(
    `INSERT INTO ${threads} (thread, caller, updated_at, turns, length, rewinds, checksum, content)
     VALUES ($1, $2, $3::pg_catalog.float8, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8) RETURNING no`,
    ...[thread, caller, updatedAt, turns, length, rewinds, crc32(text), text],
  );
  return String(added?.no);
}

function putTurn({ query, server }: Locked, no: string, turn: TurnRow): Promise<Row[]> {
  const { message, state, order, runId, first, count, text, compaction } = turn;
  const set = ['state', 'place', 'run_id', 'first', 'count', 'checksum', 'content', 'compaction'];
  return query(
    `INSERT INTO ${server.tables.turns} (thread, message, state, place, run_id, first, count, checksum, content, compaction)
     VALUES ($1::bigint, $2, $3, $4::bigint, pg_catalog.decode($5, 'hex'), $6::bigint, $7::bigint, $8::bigint, $9, $10)
     ON CONFLICT (thread, message) DO UPDATE SET ${set.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    ...[no, message, state, order, hexOf(runId), first, count, checksumOf(text, compaction), text, compaction],
  );
}

const checksumOf = (text: string, compaction: string | null) => crc32(text, crc32(compaction ?? ''));

/** A damaged text cannot be opened: the codec, or the parser, says so. */
function threadRow(row: Row): ThreadRow {
  const { thread, caller, content, checksum } = row;
  return {
    thread: String(thread),
    caller: String(caller),
    updatedAt: Number(row.updated_at),
    turns: Number(row.turns),
    length: Number(row.length),
    rewinds: Number(row.rewinds),
    text: isIntact(content, checksum) ? content : DAMAGED_TEXT,
  };
}

function turnRow(row: Row): TurnRow {
  const { content, compaction = null, checksum } = row;
  const isWhole = typeof content === 'string' && checksumOf(content, compaction) === Number(checksum);
  return {
    message: String(row.message),
    runId: runIdOfRow(row.run_id ?? ''),
    state: row.state as TurnState,
    order: Number(row.place),
    first: Number(row.first),
    count: Number(row.count),
    ...(isWhole ? { text: content, compaction } : { text: DAMAGED_TEXT, compaction: null }),
  };
}

/** Works in a transaction that has the locks of some threads. A failure changes nothing. */
async function withThreads<T>(
  session: PoolSession,
  { server, threads }: { readonly server: Server; readonly threads: readonly string[] },
  work: (locked: Locked) => Promise<T>,
): Promise<T> {
  const query: Locked['query'] = (text, ...values) => session.query(text, values);
  const names = threads.map((thread) => `thread ${server.tables.schema} ${thread}`);
  return inLockedTransaction(session, names, () => work({ session, server, query }));
}
