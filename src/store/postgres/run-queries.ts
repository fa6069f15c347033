import { CheckpointCorruptError } from '../../values/errors.ts';
import { type Due, ON_COMMAND } from '../due.ts';
import type { ListDueOptions } from '../due-port.ts';
import { isIntact } from '../encoding/checksum.ts';
import { parseStored } from '../encoding/encode.ts';
import { piecesIn, type StoredPieces } from '../encoding/piece-refs.ts';
import { newOwner } from '../owner.ts';
import type { Lease } from '../rules/lease.ts';
import type { ListPage, MessageRange, MessageReader, StoredTexts } from '../store-driver.ts';
import { withColumns } from './message-rows.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession, Row } from './pool.ts';
import { dueOf, headChecksum, hexOf, leaseOf, runIdOfRow } from './run-row.ts';
import { GIVEN_BACK, type Tables } from './schema.ts';
import type { Server } from './server.ts';

/** About how many characters of a transcript are read and parsed before the event loop gets its turn, and how many rows. */
const CHARS_PER_PAGE = 2 ** 20;
const ROWS_PER_PAGE = 1_024;

/** A record as it is stored, without its messages. */
export interface ReadRow {
  readonly runId: string;
  readonly updatedAt: number;
  readonly lease: Lease | undefined;
  readonly due: Due;
  /** The lease clock at the read, ms. */
  readonly now: number;
  readonly row: Row;
  /** Its run has ended, and the record is kept. */
  readonly hasEnded?: true;
}

/** Of rows `r` of runs and `s` of starts. */
export const columns = `pg_catalog.encode(r.run_id, 'hex') AS id, r.body, r.version, r.revision, r.updated_at, r.message_count, r.checksum,
  r.head, r.due_at, r.fair, r.agent, r.owner, r.epoch, r.attempts, r.expires_at, r.deployment, s.meta, s.meta_checksum`;

/** The pieces that a row of `runs` or `messages` names, at the time of the statement. */
export function piecesOf(tables: Tables, row: string): string {
  return `(SELECT pg_catalog.json_agg(pg_catalog.json_build_array(x.checksum, x.bundled)) FROM ${bundlesOf(tables, row)}) AS pieces`;
}

function bundlesOf({ pieces }: Tables, row: string): string {
  return `${pieces} x WHERE x.body = ${row}.body AND x.bundle = ANY (pg_catalog.string_to_array(${row}.pieces, ' ')::bigint[])`;
}

/** Reads the row of a run in PostgreSQL, without its messages. */
export async function readRunRow(
  session: PoolSession,
  { tables, times }: Server,
  runId: string,
): Promise<ReadRow | undefined> {
  const parameters = new Parameters();
  const rows = await session.query(
    `SELECT ${columns}, ${piecesOf(tables, 'r')}, s.extras, s.extras_checksum, ${times.lease(parameters)} AS now
     FROM ${tables.runs} r LEFT JOIN ${tables.starts} s ON s.body = r.body
     WHERE r.run_id = pg_catalog.decode(${parameters.add(hexOf(runId))}, 'hex') AND r.body IS NOT NULL`,
    parameters.values,
  );
  return rows[0] && storedRun(rows[0]);
}

/** Reads the kept record of a run that ended, without its messages. */
export async function readEndedRun(
  session: PoolSession,
  { tables, times }: Server,
  runId: string,
): Promise<ReadRow | undefined> {
  const parameters = new Parameters();
  const record = 'run_id, body, version, revision, updated_at, message_count, checksum, head, pieces';
  const unowned =
    'NULL::numeric AS due_at, NULL AS owner, NULL::bigint AS epoch, NULL::bigint AS attempts, NULL::numeric AS deployment';
  const rows = await session.query(
    `SELECT ${columns}, ${piecesOf(tables, 'r')}, s.extras, s.extras_checksum, ${times.lease(parameters)} AS now
     FROM (SELECT ${record}, ${unowned}, '' AS fair, '' AS agent, NULL::pg_catalog.float8 AS expires_at FROM ${tables.ended}
       WHERE run_id = pg_catalog.decode(${parameters.add(hexOf(runId))}, 'hex') AND keep_until > ${parameters.add(times.wall())}::pg_catalog.float8) r
     LEFT JOIN ${tables.starts} s ON s.body = r.body`,
    parameters.values,
  );
  return rows[0] && { ...storedRun(rows[0]), hasEnded: true };
}

/** Reads a page of the list of runs in PostgreSQL. Sorts only keys, and reads only the texts of the page. */
export async function readPage(
  session: PoolSession,
  { tables, times }: Server,
  { after, limit, resting, callers }: Pick<ListPage, 'after' | 'limit' | 'resting' | 'callers'>,
): Promise<ReadRow[]> {
  const parameters = new Parameters();
  const from = [after?.updatedAt ?? Number.NEGATIVE_INFINITY, hexOf(after?.runId ?? '')] as const;
  const isLater = `due_at > ${times.due(parameters)} AND NOT ${GIVEN_BACK}`;
  const which = resting === undefined ? '' : resting ? `AND ${isLater}` : `AND (NOT (${isLater}) OR due_at IS NULL)`;
  // Rows of an earlier layout have no caller.
  const whose = callers ? `AND (caller = ANY (${parameters.add(callers)}::pg_catalog.text[]) OR caller IS NULL)` : '';
  const rows = await session.query(
    `SELECT ${columns}, ${piecesOf(tables, 'r')}, ${times.lease(parameters)} AS now FROM (
       SELECT run_id, updated_at FROM ${tables.runs} WHERE body IS NOT NULL ${which} ${whose}
         AND (updated_at, run_id) > (${parameters.add(from[0])}::pg_catalog.float8, pg_catalog.decode(${parameters.add(from[1])}, 'hex'))
       ORDER BY updated_at, run_id LIMIT ${parameters.add(limit)}::bigint
     ) p JOIN ${tables.runs} r ON r.run_id = p.run_id LEFT JOIN ${tables.starts} s ON s.body = r.body
     ORDER BY p.updated_at, p.run_id`,
    parameters.values,
  );
  return rows.map(storedRun);
}

/** Rows of due runs, with the times of the read. */
interface DuePage {
  readonly now: number;
  readonly nextAt: number | undefined;
  readonly runs: readonly ReadRow[];
}

/**
 * The beginning of the names of owners on this machine, as PostgreSQL has them: only here it can be known that one of them is
 * dead.
 */
export const ofThisMachine = () => JSON.stringify(`${newOwner().split('|').slice(0, 3).join('|')}|`).slice(0, -1);
/** As `ofThisMachine`, of the mark in the place of an owner that found the record damaged. */
export const DAMAGED = '"|quarantined|';

/**
 * Reads a page of due runs in PostgreSQL, by their time: all without an owner, and those of this machine, whose owners may be
 * dead. The server's clock decides.
 */
export async function readDue(
  session: PoolSession,
  { tables, times }: Server,
  { after, limit }: Pick<ListDueOptions, 'after' | 'limit'>,
): Promise<DuePage> {
  const parameters = new Parameters();
  const { runs, starts } = tables;
  const now = times.due(parameters);
  const from = `(${parameters.add(after?.dueAt ?? -1)}::numeric, pg_catalog.decode(${parameters.add(hexOf(after?.runId ?? ''))}, 'hex'))`;
  const rows = await session.query(
    `SELECT t.now AS due_now, t.next_at, ${columns}, ${piecesOf(tables, 'r')}, ${times.lease(parameters)} AS now
     FROM (SELECT ${now} AS now, (SELECT pg_catalog.min(due_at) FROM ${runs} WHERE body IS NOT NULL AND due_at > ${now}) AS next_at) t
     LEFT JOIN (SELECT run_id, due_at FROM ${runs} WHERE body IS NOT NULL AND due_at <= ${now} AND (due_at, run_id) > ${from}
       AND (owner IS NULL OR (NOT pg_catalog.starts_with(owner, '${DAMAGED}') AND
         (expires_at <= ${times.lease(parameters)} OR pg_catalog.starts_with(owner, ${parameters.add(ofThisMachine())}))))
       ORDER BY due_at, run_id LIMIT ${parameters.add(limit)}::bigint) p ON true
     LEFT JOIN ${runs} r ON r.run_id = p.run_id LEFT JOIN ${starts} s ON s.body = r.body
     ORDER BY p.due_at, p.run_id`,
    parameters.values,
  );
  const next = rows[0]?.next_at == null ? ON_COMMAND : Number(rows[0].next_at);
  const nextAt = next < ON_COMMAND ? next : undefined;
  return { now: Number(rows[0]?.due_now), nextAt, runs: rows.filter(({ id }) => id != null).map(storedRun) };
}

/** Reads which transactions are visible: two equal snapshots see the same, so that nothing was committed between them. */
export async function readSnapshot(session: PoolSession): Promise<string> {
  const [row] = await session.query('SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text AS snapshot', []);
  return String(row?.snapshot);
}

/** Counts the runs in PostgreSQL that are due later, or only by a command. */
export async function countLater(session: PoolSession, { tables, times }: Server): Promise<number> {
  const parameters = new Parameters();
  const later = `due_at > ${times.due(parameters)} AND NOT ${GIVEN_BACK}`;
  const text = `SELECT pg_catalog.count(*) AS count FROM ${tables.runs} WHERE body IS NOT NULL AND ${later}`;
  const [row] = await session.query(text, parameters.values);
  return Number(row?.count);
}

/**
 * Reads messages of a record in PostgreSQL, up to the bound of one turn.
 * @returns whether there were any
 * @throws {CHECKPOINT_CORRUPT}
 */
export async function readMessages(
  session: PoolSession,
  { tables }: Server,
  { stored, messages }: { readonly stored: ReadRow; readonly messages: MessageReader },
): Promise<boolean> {
  const { row } = stored;
  // The size of a stored text is known without reading it.
  const rows = await session.query(
    `SELECT first, checksum, messages, ${piecesOf(tables, 'sized')} FROM (
       SELECT page.*, pg_catalog.sum(size) OVER (ORDER BY first) - size AS before
       FROM (SELECT body, first, checksum, messages, pieces, pg_catalog.octet_length(messages) + CASE WHEN pieces IS NULL THEN 0 ELSE
           (SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(x.bundled)), 0) FROM ${bundlesOf(tables, 'm')}) END AS size
         FROM ${tables.messages} m
         WHERE body = $1::bigint AND first >= $2::bigint AND first < $3::bigint ORDER BY first LIMIT ${ROWS_PER_PAGE}) page
     ) sized WHERE before < ${CHARS_PER_PAGE} ORDER BY first`,
    [row.body, messages.count, row.message_count],
  );
  for (const { first, checksum, messages: text, pieces } of rows) {
    if (Number(first) !== messages.count) return false;
    checkText(text ?? '', checksum, `messages from ${first} on`);
    messages.add(text ?? '', piecesFrom(pieces));
  }
  return rows.length > 0;
}

/** A row of messages, with the index of its first one. */
interface PartRow {
  readonly first: number;
  readonly text: string;
  readonly pieces: StoredPieces;
}

/**
 * Reads the rows of a record in PostgreSQL that hold messages `from` to `to` (excluded).
 * @returns undefined if the record was replaced meanwhile
 * @throws {CHECKPOINT_CORRUPT}
 */
export async function readPart(
  session: PoolSession,
  server: Server,
  { stored, range: { from, to } }: { readonly stored: ReadRow; readonly range: MessageRange },
): Promise<PartRow[] | undefined> {
  const { messages } = server.tables;
  const end = Math.min(to, Number(stored.row.message_count));
  if (from >= end) return [];
  const rows = await session.query(
    `SELECT first, checksum, messages, ${piecesOf(server.tables, 'm')} FROM ${messages} m WHERE body = $1::bigint AND first < $3::bigint
       AND first >= (SELECT pg_catalog.max(first) FROM ${messages} WHERE body = $1::bigint AND first <= $2::bigint) ORDER BY first`,
    [stored.row.body, from, end],
  );
  if (rows.length === 0) {
    if (!(await isSame(session, server, stored))) return undefined;
    throw new CheckpointCorruptError(`this record is damaged: its messages from ${from} on are missing`);
  }
  return rows.map(({ first, checksum, messages: text, pieces }) => {
    checkText(text ?? '', checksum, `messages from ${first} on`);
    return { first: Number(first), text: text ?? '', pieces: piecesFrom(pieces) };
  });
}

/**
 * Returns whether a record in PostgreSQL is still the one that was read: it may have grown, but was not replaced or
 * deleted.
 */
export async function isSame(
  session: PoolSession,
  { tables }: Server,
  { runId, row, hasEnded }: ReadRow,
): Promise<boolean> {
  const table = hasEnded ? tables.ended : tables.runs;
  const rows = await session.query(`SELECT body FROM ${table} WHERE run_id = pg_catalog.decode($1, 'hex')`, [
    hexOf(runId),
  ]);
  return rows[0]?.body === row.body;
}

/** Returns the record in a row with these columns, and with `now`. */
export function storedRun(row: Row): ReadRow {
  const runId = runIdOfRow(row.id ?? '');
  return { runId, updatedAt: Number(row.updated_at), lease: leaseOf(row), due: dueOf(row), now: Number(row.now), row };
}

/** Returns the texts in the row of a record, after their checksums were verified. @throws {CHECKPOINT_CORRUPT} */
export function textsOfRow({ row, updatedAt, lease }: ReadRow): StoredTexts {
  const { body, version, revision, message_count: messageCount, meta, head, extras = null } = row;
  if (meta == null) throw damaged('meta');
  if (head == null) throw damaged('head');
  checkText(meta, row.meta_checksum, 'meta');
  if ('extras' in row) checkText(extras ?? '', row.extras_checksum, 'extras');
  const fields = { version: Number(version), revision: Number(revision), updatedAt, head };
  const checksum = headChecksum(fields, { body: Number(body), messageCount: Number(messageCount) });
  if (checksum !== Number(row.checksum)) throw new CheckpointCorruptError(wrongChecksum('head'));
  return { meta, head: withColumns(head, fields), extras, pieces: piecesFrom(row.pieces), attempts: lease?.attempts };
}

/** The pieces of some rows by name. @param found as JSON @throws {CHECKPOINT_CORRUPT} */
function piecesFrom(found: string | null | undefined): StoredPieces {
  const pieces = new Map<string, { readonly stored: string }>();
  if (found == null) return pieces;
  for (const [checksum, bundled] of parseStored(found, 'pieces') as [unknown, string][]) {
    checkText(bundled, String(checksum), 'pieces');
    for (const { name, text } of piecesIn(bundled)) pieces.set(name, { stored: text });
  }
  return pieces;
}

function checkText(text: string, checksum: string | null | undefined, what: string): void {
  if (!isIntact(text, checksum)) throw new CheckpointCorruptError(wrongChecksum(what));
}

function wrongChecksum(what: string): string {
  return `this record is damaged: the checksum of its ${what} is wrong`;
}

function damaged(what: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its ${what} is missing or not what it should be`);
}
