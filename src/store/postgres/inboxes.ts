import { crc32 } from 'node:zlib';
import { isInboxFull, MAX_INBOX_CHARS, MAX_WAITING, placesFor } from '../../run/command.ts';
import {
  type CommandToSend,
  DAMAGED_TEXT,
  refuseFull,
  refuseLarge,
  refuseMissing,
  type StoredCommand,
} from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Claim, InboxOf } from '../port.ts';
import { checkClaim } from '../rules/lease.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession, Row } from './pool.ts';
import { hexOf, leaseOf, ownerText, runIdOfRow } from './run-row.ts';
import type { Tables } from './schema.ts';
import type { Server } from './server.ts';

/** An id is any string; PostgreSQL can hold its JSON. */
export const idText = (id: string) => JSON.stringify(id);

/** A command to be sent. */
interface Sending {
  readonly command: CommandToSend;
  /** It was sent before, and the result is unknown. */
  readonly isAgain: boolean;
}

/**
 * Stores a command in the inbox of a run in PostgreSQL. The run's row gets another token: a concurrent delete of the run
 * finds it changed, looks again, and removes the command with it. So does a `leave`, which then sees the command. A repeated command is there already, or the run has
 * accepted it and remembers it, or has ended.
 * @throws {RUN_NOT_FOUND} @throws {UNDELIVERED}
 */
export async function sendRow(session: PoolSession, server: Server, { command, isAgain }: Sending): Promise<void> {
  const { runs, commands, outcomes } = server.tables;
  const { runId, id, text, kind } = command;
  const parameters = new Parameters();
  parameters.values.push(
    hexOf(runId),
    idText(id),
    Math.floor(Math.random() * 2 ** 53),
    crc32(text),
    text,
    isInboxFull(MAX_INBOX_CHARS, text, kind),
    placesFor(kind),
  );
  const sentAt = server.times.due(parameters);
  const { wake } = server;
  const told = wake === undefined ? '' : `, (SELECT ${wake} FROM run WHERE owner IS NULL) AS told`;
  const [row] = await session.query(
    `WITH run AS (UPDATE ${runs} SET token = $3::bigint, due_at = CASE WHEN due_at IS NOT NULL THEN 0 END
         WHERE run_id = pg_catalog.decode($1, 'hex') AND body IS NOT NULL RETURNING run_id, owner),
       waiting AS (SELECT pg_catalog.count(*) AS count, coalesce(pg_catalog.sum(pg_catalog.char_length(command)), 0) AS chars, pg_catalog.count(*) FILTER (WHERE command_id = $2) AS same
         FROM ${commands} WHERE run_id = pg_catalog.decode($1, 'hex')),
       put AS (INSERT INTO ${commands} (run_id, command_id, checksum, command, sent_at)
         SELECT run.run_id, $2, $4::bigint, $5, ${sentAt} FROM run, waiting WHERE waiting.count < $7::bigint
           AND (NOT $6 OR waiting.chars + pg_catalog.char_length($5) <= ${MAX_INBOX_CHARS}) ON CONFLICT DO NOTHING)
     SELECT (SELECT pg_catalog.count(*) FROM run) AS runs, count, chars, same,
       (SELECT pg_catalog.count(*) FROM ${outcomes} WHERE run_id = pg_catalog.decode($1, 'hex')) AS ended${told} FROM waiting`,
    parameters.values,
  );
  if (Number(row?.runs) === 0) {
    // The first attempt may be the reason: a cancel that was obeyed.
    if (isAgain && Number(row?.ended) > 0) return;
    throw refuseMissing(runId);
  }
  if (Number(row?.same) > 0) return;
  if (Number(row?.count) >= placesFor(kind)) throw refuseFull(runId);
  if (isInboxFull(Number(row?.chars), text, kind)) throw refuseLarge(runId, Number(row?.chars));
}

/**
 * Reads the commands in the inbox of a run in PostgreSQL. A damaged command counts as never sent: it must not block the
 * others.
 */
export async function readInbox(session: PoolSession, { tables }: Server, of: InboxOf): Promise<StoredCommand[]> {
  const { runs, commands } = tables;
  const whose =
    'owner' in of
      ? `JOIN ${runs} r ON r.run_id = c.run_id WHERE r.owner = $1`
      : "WHERE c.run_id = pg_catalog.decode($1, 'hex')";
  const rows = await session.query(
    `SELECT pg_catalog.encode(c.run_id, 'hex') AS id, c.command_id, c.checksum, c.command, c.no, c.sent_at FROM ${commands} c ${whose}
     ORDER BY c.no LIMIT ${MAX_WAITING}`,
    ['owner' in of ? ownerText(of.owner) : hexOf(of.runId)],
  );
  return rows.map(storedCommand);
}

function storedCommand({ id, command_id: commandId, checksum, command, no, sent_at: at }: Row): StoredCommand {
  const text = isIntact(command, checksum) ? command : DAMAGED_TEXT;
  const sentAt = at == null ? undefined : Number(at);
  const runId = runIdOfRow(id ?? '');
  return { runId, id: String(JSON.parse(commandId ?? '""')), text, seq: Number(no), sentAt };
}

/** Deletes commands from the inbox of a run in PostgreSQL. @throws {LEASE_LOST} */
export async function acknowledgeRows(
  session: PoolSession,
  { runs, commands }: Tables,
  { claim, ids }: { readonly claim: Claim; readonly ids: readonly string[] },
): Promise<void> {
  const { runId, owner, epoch } = claim;
  const [row = {}] = await session.query(
    `WITH run AS (SELECT owner, epoch, attempts, expires_at FROM ${runs} WHERE run_id = pg_catalog.decode($1, 'hex')),
       gone AS (DELETE FROM ${commands} WHERE run_id = pg_catalog.decode($1, 'hex') AND command_id = ANY ($2::pg_catalog.text[])
         AND EXISTS (SELECT FROM run WHERE owner = $3 AND epoch = $4::bigint))
     SELECT * FROM run`,
    [hexOf(runId), ids.map(idText), ownerText(owner), epoch],
  );
  checkClaim(leaseOf(row), claim);
}
