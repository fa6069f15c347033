import { crc32 } from 'node:zlib';
import { hasCode } from '../../values/error-data.ts';
import type { CommandToSend } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Claim } from '../port.ts';
import { checkClaim } from '../rules/lease.ts';
import { checkRoom, type ExpectWrite, isNewSignal, type KnownSignal, type SignalWrite } from '../topics.ts';
import { idText, sendRow } from './inboxes.ts';
import { Parameters } from './parameters.ts';
import { inLockedTransaction, type PoolSession, type Row } from './pool.ts';
import { hexOf, leaseOf, ownerText, runIdOfRow } from './run-row.ts';
import type { Server } from './server.ts';

/** Runs SQL inside a transaction. `$now` is the server's wall clock. */
type Query = (text: string, ...values: unknown[]) => Promise<Row[]>;

/** A transaction that has the lock of a topic: the others of the topic wait. */
interface Locked {
  readonly query: Query;
  /** Sends a command. @returns false if its run has no record @throws {UNDELIVERED} */
  send(command: CommandToSend): Promise<boolean>;
}

/** Adds or withdraws a wait in PostgreSQL: see `WaitDriver`. It may be repeated. @throws {LEASE_LOST} */
export async function expectIn(session: PoolSession, server: Server, write: ExpectWrite): Promise<void> {
  const { claim, waitId, topic } = write;
  const { waits } = server.tables;
  const wait = [hexOf(claim.runId), idText(waitId)];
  await withTopic(session, { server, topic: topic ?? '' }, async (locked) => {
    const { query } = locked;
    await own(query, server, claim);
    const found = `FROM ${waits} WHERE run_id = pg_catalog.decode($1, 'hex') AND wait_id = $2`;
    const [before] = await query(`SELECT topic ${found}`, ...wait);
    if (before && before.topic === topic) return;
    await query(`DELETE ${found}`, ...wait);
    if (topic === null || (await hasGot(locked, server, { ...write, topic }))) return;
    const added = `INSERT INTO ${waits} (run_id, wait_id, topic) VALUES (pg_catalog.decode($1, 'hex'), $2, $3)`;
    await query(added, ...wait, topic);
  });
}

/**
 * Checks a claim, and locks its run until the end of the transaction. The row gets another token, so that a concurrent delete
 * of the run looks again, and removes the wait with it.
 */
async function own(query: Query, { tables }: Server, claim: Claim): Promise<void> {
  const { runId, owner, epoch } = claim;
  const token = Math.floor(Math.random() * 2 ** 53);
  const owned = "run_id = pg_catalog.decode($1, 'hex') AND owner = $2 AND epoch = $3::bigint";
  const text = `UPDATE ${tables.runs} SET token = $4::bigint WHERE ${owned} RETURNING token`;
  const rows = await query(text, hexOf(runId), ownerText(owner), epoch, token);
  if (rows.length > 0) return;
  const columns = 'owner, epoch, attempts, expires_at';
  const found = await query(
    `SELECT ${columns} FROM ${tables.runs} WHERE run_id = pg_catalog.decode($1, 'hex')`,
    hexOf(runId),
  );
  checkClaim(leaseOf(found[0] ?? {}), claim);
}

/** Delivers the oldest kept signal to a wait. @returns whether the wait has got one, now or before */
async function hasGot(
  { query, send }: Locked,
  { tables }: Server,
  { claim, topic, commandId, commandOf }: ExpectWrite,
): Promise<boolean> {
  const { signals, commands } = tables;
  const id = hexOf(claim.runId);
  const sent = `SELECT no FROM ${commands} WHERE run_id = pg_catalog.decode($1, 'hex') AND command_id = $2`;
  if ((await query(sent, id, idText(commandId))).length > 0) return true;
  for (;;) {
    const [kept] = await query(
      `SELECT no, checksum, content FROM ${signals} WHERE topic = $1 AND run_id IS NULL AND until > $now ORDER BY no LIMIT 1`,
      topic,
    );
    if (!kept) return false;
    const { no, checksum, content } = kept;
    const command = isIntact(content, checksum) ? commandOf({ text: content }) : undefined;
    if (command) {
      if (!(await send(command))) return true;
      const delivered = "run_id = pg_catalog.decode($2, 'hex'), content = NULL, checksum = 0";
      await query(`UPDATE ${signals} SET ${delivered} WHERE no = $1::bigint`, no, id);
      return true;
    }
    await query(`DELETE FROM ${signals} WHERE no = $1::bigint`, no);
  }
}

/** Delivers or keeps a signal in PostgreSQL. It may be repeated. @returns the run that has it @throws {UNDELIVERED} */
export async function signalIn(session: PoolSession, server: Server, signal: SignalWrite): Promise<string | undefined> {
  const { key, topic, text, untilMs, commandFor } = signal;
  const { waits, signals } = server.tables;
  return withTopic(session, { server, topic }, async ({ query, send }) => {
    const stored = `SELECT pg_catalog.encode(run_id, 'hex') AS id FROM ${signals} WHERE signal = $1 AND until > $now`;
    const [row] = await query(stored, key);
    const known: KnownSignal | undefined = row && { to: row.id == null ? null : runIdOfRow(row.id) };
    if (!isNewSignal(signal, known)) return known?.to ?? undefined;
    const put = (to: string | null, content: string | null) =>
      query(
        `INSERT INTO ${signals} (signal, topic, until, run_id, checksum, content)
         VALUES ($1, $2, $3::pg_catalog.float8, pg_catalog.decode($4, 'hex'), $5::bigint, $6)
         ON CONFLICT (signal) DO UPDATE SET until = excluded.until, run_id = excluded.run_id, checksum = excluded.checksum,
           content = excluded.content`,
        ...[key, topic, untilMs, to, content === null ? 0 : crc32(content), content],
      );
    for (;;) {
      const [wait] = await query(
        `DELETE FROM ${waits} WHERE no = (SELECT no FROM ${waits} WHERE topic = $1 ORDER BY no LIMIT 1)
         RETURNING pg_catalog.encode(run_id, 'hex') AS id, wait_id`,
        topic,
      );
      if (!wait) break;
      const runId = runIdOfRow(wait.id ?? '');
      if (!(await send(commandFor({ runId, waitId: String(JSON.parse(wait.wait_id ?? '')) })))) continue;
      await put(wait.id ?? '', null);
      return runId;
    }
    const kept = `SELECT pg_catalog.count(*) AS count FROM ${signals} WHERE topic = $1 AND run_id IS NULL AND until > $now`;
    checkRoom(Number((await query(kept, topic))[0]?.count));
    await put(null, text);
    return undefined;
  });
}

/** Works in a transaction that has the lock of a topic. A failure changes nothing. */
async function withTopic<T>(
  session: PoolSession,
  { server, topic }: { readonly server: Server; readonly topic: string },
  work: (locked: Locked) => Promise<T>,
): Promise<T> {
  const query: Query = (text, ...values) => {
    const parameters = new Parameters();
    parameters.values.push(...values);
    // Only a statement that names the time has it as a parameter.
    const whole = text.includes('$now') ? text.replaceAll('$now', server.times.due(parameters)) : text;
    return session.query(whole, parameters.values);
  };
  const sendNow = async (command: CommandToSend) => {
    try {
      await sendRow(session, server, { command, isAgain: false });
      return true;
    } catch (error) {
      if (hasCode(error, 'RUN_NOT_FOUND')) return false;
      throw error;
    }
  };
  const name = `${server.tables.schema} ${topic}`;
  return inLockedTransaction(session, [name], () => work({ query, send: sendNow }));
}
