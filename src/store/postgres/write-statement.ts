import { crc32 } from 'node:zlib';
import { bundleOf } from '../encoding/piece-refs.ts';
import { messageRows, newPieces, tokensOfRow } from './message-rows.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession } from './pool.ts';
import type { RowChange } from './row-change.ts';
import { headChecksum, hexOf, ownerText, type RowRecord, type Times } from './run-row.ts';
import { REPLACES, type Tables } from './schema.ts';
import { totalsPut } from './totals/totals.ts';

/** A change to be sent, with the new token of the run's row. */
export interface SentWrite {
  readonly change: RowChange;
  readonly token: number;
  /** The record after the change. */
  readonly record: RowRecord | undefined;
}

/** The inputs of a statement. */
interface Writing {
  readonly sent: readonly SentWrite[];
  readonly tables: Tables;
  readonly times: Times;
  readonly parameters: Parameters;
}

/** Most expired outcomes that one write removes. */
const FORGOTTEN_AT_ONCE = 100;

/**
 * Writes changes of different runs to PostgreSQL in one statement: all of them are stored, or none. A change whose row is
 * no longer that of its decision, or that another transaction has locked, is left out without waiting.
 * @returns the tokens of the stored changes
 */
export async function write(
  session: PoolSession,
  sent: readonly SentWrite[],
  { tables, times, wake }: { readonly tables: Tables; readonly times: Times; readonly wake: string | undefined },
): Promise<Set<number>> {
  const parameters = new Parameters();
  // All statements use the same order: if two add the same runs, only one waits for the other.
  const ordered = sent.toSorted((a, b) => Buffer.compare(Buffer.from(a.change.runId), Buffer.from(b.change.runId)));
  const parts = partsOf({ sent: ordered, tables, times, parameters });
  const woken =
    wake === undefined ? [] : sent.filter(({ change }) => isDueNow(change, times)).map(({ token }) => token);
  const told = woken.length > 0 ? `, CASE WHEN token = ANY (${parameters.add(woken)}::bigint[]) THEN ${wake} END` : '';
  const rows = await session.query(`WITH ${parts.join(',\n')}\nSELECT token${told} FROM landed`, parameters.values);
  return new Set(rows.map((row) => Number(row.token)));
}

/** Whether a change leaves a run that a process can take at once. */
function isDueNow({ kind, lease, record, head, due }: RowChange, times: Times): boolean {
  const isFree = kind === 'put' && (lease?.owner ?? null) === null && (record ?? head) !== undefined;
  return isFree && due !== null && due <= times.wall();
}

/** The parts of the statement that at least one change needs. */
function partsOf(writing: Writing): string[] {
  const changes = writing.sent.map(({ change }) => change);
  const has = (test: (change: RowChange) => unknown) => changes.some(test);
  const landing = [
    ['created', has(({ kind, seen }) => kind === 'put' && seen === null) && created(writing)],
    ['changed', has(({ kind, seen }) => kind === 'put' && seen !== null) && changed(writing)],
    ['removed', has(({ kind }) => kind === 'remove') && removed(writing)],
    ['moved', has(({ kind }) => kind === 'end') && moved(writing)],
    ['free', has(({ kind }) => kind === 'none') && "SELECT token FROM input WHERE kind = 'none'"],
  ].filter(([, part]) => part);
  const landed = landing.map(([name]) => `SELECT token FROM ${name}`).join(' UNION ALL ');
  const following = [
    has(({ start }) => start) && starts(writing),
    has((change) => newPieces(change).length) && pieces(writing),
    has(({ rows }) => rows?.length) && messages(writing),
    has(isReplacing) && bodiesGone(writing),
    has(({ journal }) => journal?.rows.some(({ isKept }) => isKept)) && journalRows(writing, 'kept'),
    has(({ journal }) => journal?.rows.some(({ isKept }) => !isKept)) && journalRows(writing, 'passing'),
    has(({ journal }) => journal?.dropTo !== undefined) && passingGone(writing),
    has(({ outcome }) => outcome) && outcomes(writing),
    has(({ deliver }) => deliver) && undelivered(writing),
    has(({ kind }) => kind === 'end') && endedPut(writing),
    has(({ ended }) => ended?.totals) && counted(writing),
    has(({ kind, lease }) => kind === 'remove' && lease) && epochKept(writing),
    has(({ kind }) => kind === 'remove' || kind === 'end') && commandsGone(writing),
  ].filter((part) => part !== false);
  return [
    input(writing),
    locked(writing),
    ...landing.map(([name, part]) => `${name} AS (${part})`),
    `landed AS (${landed})`,
    ...following,
  ];
}

/** The former content of the record is removed. */
const isReplacing = ({ start, kind, record }: RowChange) => record !== undefined && (start || kind === 'remove');

function input({ sent, parameters }: Writing): string {
  const rows = sent.map(({ change, token, record }) => {
    const { runId, kind, seen, lease, attempts, ttlMs: ttl, head } = change;
    const checksum = head && record ? headChecksum(head, record) : null;
    const from = { id: hexOf(runId), kind, seen, token, body: record?.body, replaced: replacedBody(change) };
    const { version, revision, updatedAt: updated_at, head: text } = head ?? {};
    const to = { version, revision, updated_at, message_count: head?.messageCount, checksum, head: text };
    const pieces = head && record ? tokensOfRow([...record.pieces.values()]) : null;
    const { due: due_at, filed, definition, pausedBy: paused_by } = change;
    // Only a grant has another number than the row.
    const deployment = ttl === undefined ? undefined : lease?.deployment;
    const found = { fair: filed?.fair, agent: filed?.agent, caller: filed?.caller };
    const place = { ...found, deployment, definition, paused_by };
    return {
      ...from,
      due_at,
      owner: ownerText(lease?.owner ?? null),
      epoch: lease?.epoch,
      attempts,
      ttl,
      ...to,
      pieces,
      ...place,
    };
  });
  return `input AS (SELECT pg_catalog.decode(t.id, 'hex') AS run_id, t.* FROM ${parameters.table(
    {
      ...{ id: 'text', kind: 'text', seen: 'bigint', token: 'bigint', body: 'bigint', replaced: 'bigint' },
      ...{
        due_at: 'numeric',
        owner: 'text',
        epoch: 'bigint',
        attempts: 'bigint',
        ttl: 'float8',
        version: 'bigint',
        revision: 'bigint',
      },
      ...{ updated_at: 'float8', message_count: 'bigint', checksum: 'bigint', head: 'long', pieces: 'text' },
      ...Object.fromEntries(placeColumns(sent).map((column) => [column, placeTypes[column]])),
    },
    rows,
  )} WHERE t.id IS NOT NULL)`;
}

const replacedBody = (change: RowChange) => (isReplacing(change) ? change.record?.body : null);

/** The unchanged rows. The statement does not wait for another transaction's lock: the write looks again. */
function locked({ tables }: Writing): string {
  return `locked AS (SELECT i.token FROM input i JOIN ${tables.runs} r ON r.run_id = i.run_id AND r.token = i.seen
    FOR UPDATE OF r SKIP LOCKED)`;
}

const columns =
  'token, body, due_at, owner, epoch, attempts, version, revision, updated_at, message_count, checksum, pieces, head';

const placeTypes = {
  ...{ fair: 'text', agent: 'text', caller: 'text' },
  ...{ deployment: 'bigint', definition: 'text', paused_by: 'text' },
} as const;
type PlaceColumn = keyof typeof placeTypes;

/** The columns under which runs are found, and of their deployment, definition and pause, as far as a write has them: a step has none. */
function placeColumns(sent: readonly SentWrite[]): readonly PlaceColumn[] {
  const isFiled = sent.some(({ change }) => change.filed);
  const isGranted = sent.some(({ change: { ttlMs, lease } }) => ttlMs !== undefined && lease?.deployment !== undefined);
  const isPaused = sent.some(({ change }) => change.pausedBy !== undefined);
  const isParked = sent.some(({ change }) => change.definition !== undefined);
  return [
    ...(isFiled ? (['fair', 'agent', 'caller'] as const) : []),
    ...(isGranted ? (['deployment'] as const) : []),
    ...(isParked ? (['definition'] as const) : []),
    ...(isPaused ? (['paused_by'] as const) : []),
  ];
}

const ofNothing: { readonly [Column in PlaceColumn]?: string } = {
  fair: "coalesce(fair, '')",
  agent: "coalesce(agent, '')",
};

function created({ sent, tables, times, parameters }: Writing): string {
  const place = placeColumns(sent);
  const into = [columns, ...place].join(', ');
  const values = [columns, ...place.map((column) => ofNothing[column] ?? column)].join(', ');
  return `INSERT INTO ${tables.runs} (run_id, expires_at, ${into})
    SELECT run_id, ${times.lease(parameters)} + ttl, ${values} FROM input WHERE kind = 'put' AND seen IS NULL ORDER BY run_id
    ON CONFLICT (run_id) DO NOTHING RETURNING token`;
}

/** A change without a head leaves the record unchanged. */
function changed({ sent, tables, times, parameters }: Writing): string {
  const kept = [
    'version',
    'revision',
    'updated_at',
    'message_count',
    'checksum',
    'pieces',
    'head',
    ...placeColumns(sent),
  ];
  return `UPDATE ${tables.runs} r SET token = i.token, body = i.body, due_at = i.due_at, owner = i.owner, epoch = i.epoch,
      attempts = i.attempts, expires_at = coalesce(${times.lease(parameters)} + i.ttl, r.expires_at),
      ${kept.map((column) => `${column} = coalesce(i.${column}, r.${column})`).join(', ')}
    FROM input i JOIN locked USING (token) WHERE i.kind = 'put' AND r.run_id = i.run_id RETURNING i.token`;
}

function removed({ tables }: Writing): string {
  return `DELETE FROM ${tables.runs} r USING input i JOIN locked USING (token)
    WHERE i.kind = 'remove' AND r.run_id = i.run_id RETURNING i.token`;
}

/** The columns of a record that stay when its run ends. */
const recordColumns = ['body', 'version', 'revision', 'updated_at', 'message_count', 'checksum', 'pieces', 'head'];

/** The rows of runs that end. */
function moved({ tables }: Writing): string {
  return `DELETE FROM ${tables.runs} r USING input i JOIN locked USING (token)
    WHERE i.kind = 'end' AND r.run_id = i.run_id
    RETURNING i.token, r.run_id, ${recordColumns.map((column) => `r.${column}`).join(', ')}`;
}

function endedPut({ sent, tables, times, parameters }: Writing): string {
  const rows = sent.flatMap(({ change: { ended }, token }) => {
    if (!ended) return [];
    const { text, agent, caller, keepUntil: keep_until, epoch } = ended;
    return [{ token, agent, caller, keep_until, epoch, entry_checksum: crc32(text), entry: text }];
  });
  const table = parameters.table(
    {
      ...{ token: 'bigint', agent: 'text', caller: 'text', keep_until: 'float8', epoch: 'bigint' },
      ...{ entry_checksum: 'bigint', entry: 'long' },
    },
    rows,
  );
  const record = recordColumns.join(', ');
  return `ended_put AS (INSERT INTO ${tables.ended}
      (run_id, ${record}, ended_at, keep_until, epoch, agent, caller, entry_checksum, entry)
    SELECT m.run_id, ${recordColumns.map((column) => `m.${column}`).join(', ')}, pg_catalog.floor(${times.due(parameters)})::pg_catalog.float8,
      t.keep_until, t.epoch, t.agent, t.caller, t.entry_checksum, t.entry
    FROM moved m JOIN ${table} ON t.token = m.token)`;
}

function counted({ sent, tables, parameters }: Writing): string {
  const ends = sent.flatMap(({ change: { ended }, token }) => (ended?.totals ? [{ token, totals: ended.totals }] : []));
  return totalsPut(tables, parameters, ends);
}

function starts({ sent, tables, parameters }: Writing): string {
  const rows = sent.flatMap(({ change: { start }, token }) => {
    if (!start) return [];
    const { meta, extras } = start;
    return [{ token, meta_checksum: crc32(meta), extras_checksum: crc32(extras ?? ''), meta, extras }];
  });
  const table = parameters.table(
    { token: 'bigint', meta_checksum: 'bigint', extras_checksum: 'bigint', meta: 'long', extras: 'long' },
    rows,
  );
  return `starts_put AS (INSERT INTO ${tables.starts} (body, meta_checksum, extras_checksum, meta, extras)
    SELECT token, meta_checksum, extras_checksum, meta, extras FROM ${table} JOIN landed USING (token))`;
}

function messages({ sent, tables, parameters }: Writing): string {
  const rows = sent.flatMap(({ change, token, record }) => {
    const body = record?.body;
    return messageRows(change, token).map((row) => ({ token, body, ...row }));
  });
  const table = parameters.table(
    { token: 'bigint', body: 'bigint', first: 'bigint', checksum: 'bigint', messages: 'long', pieces: 'text' },
    rows,
  );
  return `messages_put AS (INSERT INTO ${tables.messages} (body, first, checksum, messages, pieces)
    SELECT body, first, checksum, messages, pieces FROM ${table} JOIN landed USING (token))`;
}

function pieces({ sent, tables, parameters }: Writing): string {
  const rows = sent.flatMap(({ change, token, record }) => {
    const body = record?.body;
    const bundled = bundleOf(newPieces(change));
    return bundled === '' ? [] : [{ token, body, checksum: crc32(bundled), bundled }];
  });
  const table = parameters.table({ token: 'bigint', body: 'bigint', checksum: 'bigint', bundled: 'long' }, rows);
  return `pieces_put AS (INSERT INTO ${tables.pieces} (body, bundle, checksum, bundled)
    SELECT body, token, checksum, bundled FROM ${table} JOIN landed USING (token))`;
}

function bodiesGone({ tables }: Writing): string {
  const gone = (table: string) =>
    `DELETE FROM ${table} p USING input i JOIN landed USING (token) WHERE p.body = i.replaced`;
  const { starts, messages, pieces } = tables;
  return `starts_gone AS (${gone(starts)}), messages_gone AS (${gone(messages)}), pieces_gone AS (${gone(pieces)})`;
}

function outcomes({ sent, tables, times, parameters }: Writing): string {
  const rows = sent.flatMap(({ change: { runId, outcome }, token }) => {
    if (!outcome) return [];
    const { untilMs: until, epoch, checksum, text } = outcome;
    return [{ token, id: hexOf(runId), until, epoch, checksum, outcome: text }];
  });
  const table = parameters.table(
    { token: 'bigint', id: 'text', until: 'float8', epoch: 'bigint', checksum: 'bigint', outcome: 'long' },
    rows,
  );
  return `outcomes_gone AS (DELETE FROM ${tables.outcomes} WHERE run_id IN (
      SELECT run_id FROM ${tables.outcomes} WHERE until <= ${parameters.add(times.wall())}::pg_catalog.float8
        AND run_id NOT IN (SELECT run_id FROM input) ORDER BY until LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED)),
    outcomes_put AS (INSERT INTO ${tables.outcomes} AS o (run_id, until, epoch, checksum, outcome)
      SELECT pg_catalog.decode(id, 'hex'), until, epoch, checksum, outcome FROM ${table} JOIN landed USING (token) ORDER BY id
      ON CONFLICT (run_id) DO UPDATE SET until = excluded.until, epoch = excluded.epoch,
        checksum = excluded.checksum, outcome = excluded.outcome)`;
}

function undelivered({ sent, tables, times, parameters }: Writing): string {
  const rows = sent.flatMap(({ change: { runId, deliver }, token }) => {
    if (!deliver) return [];
    const { id, agent, untilMs: until, text: mark } = deliver;
    return [{ token, id: hexOf(runId), outcome_id: hexOf(id), agent, until, mark }];
  });
  const table = parameters.table(
    { token: 'bigint', id: 'text', outcome_id: 'text', agent: 'text', until: 'float8', mark: 'long' },
    rows,
  );
  return `undelivered_put AS (INSERT INTO ${tables.deliveries} (run_id, outcome_id, agent, due_at, until, mark)
    SELECT pg_catalog.decode(id, 'hex'), pg_catalog.decode(outcome_id, 'hex'), agent, ${times.due(parameters)}, until, mark
    FROM ${table} JOIN landed USING (token) ORDER BY id
    ON CONFLICT (run_id, outcome_id) DO UPDATE SET due_at = excluded.due_at, until = excluded.until, tries = 0, mark = excluded.mark)`;
}

function commandsGone({ tables }: Writing): string {
  return `commands_gone AS (DELETE FROM ${tables.commands} c USING input i JOIN landed USING (token)
    WHERE i.kind IN ('remove', 'end') AND c.run_id = i.run_id),
    waits_gone AS (DELETE FROM ${tables.waits} w USING input i JOIN landed USING (token)
    WHERE i.kind IN ('remove', 'end') AND w.run_id = i.run_id),
    ${journalsGone(tables, ofRemovedRecord)}`;
}

/** Without a record of its own a run has no journal: that of an earlier run which ended stays. */
const ofRemovedRecord =
  "USING input i JOIN landed USING (token) WHERE i.kind = 'remove' AND i.replaced IS NOT NULL AND j.run_id = i.run_id";

/** The parts of a statement that remove journals. @param which ends a DELETE of rows `j` */
export function journalsGone({ journal, passing }: Tables, which: string): string {
  return `journal_gone AS (DELETE FROM ${journal} j ${which}), passing_gone AS (DELETE FROM ${passing} j ${which})`;
}

function journalRows({ sent, tables, parameters }: Writing, keep: 'kept' | 'passing'): string {
  const rows = sent.flatMap(({ change: { runId, journal }, token }) =>
    (journal?.rows ?? [])
      .filter(({ isKept, place }) => isKept === (keep === 'kept') && (isKept || place > (journal?.dropTo ?? 0)))
      .map(({ place, text }) => ({ token, id: hexOf(runId), place, checksum: crc32(text), entries: text })),
  );
  const table = parameters.table(
    { token: 'bigint', id: 'text', place: 'bigint', checksum: 'bigint', entries: 'long' },
    rows,
  );
  return `${keep}_put AS (INSERT INTO ${keep === 'kept' ? tables.journal : tables.passing} (run_id, place, checksum, entries)
    SELECT pg_catalog.decode(id, 'hex'), place, checksum, entries FROM ${table} JOIN landed USING (token) ${REPLACES})`;
}

/** The save has what they told. */
function passingGone({ sent, tables, parameters }: Writing): string {
  const rows = sent.flatMap(({ change: { runId, journal }, token }) =>
    journal?.dropTo === undefined ? [] : [{ token, id: hexOf(runId), drop_to: journal.dropTo }],
  );
  const table = parameters.table({ token: 'bigint', id: 'text', drop_to: 'bigint' }, rows);
  return `passing_dropped AS (DELETE FROM ${tables.passing} p USING ${table} JOIN landed USING (token)
    WHERE p.run_id = pg_catalog.decode(t.id, 'hex') AND p.place <= t.drop_to)`;
}

/** The epoch outlives the record while the outcome is kept. */
function epochKept({ tables }: Writing): string {
  return `epoch_kept AS (UPDATE ${tables.outcomes} o SET epoch = greatest(o.epoch, i.epoch)
    FROM input i JOIN landed USING (token) WHERE i.kind = 'remove' AND i.epoch IS NOT NULL AND o.run_id = i.run_id)`;
}
