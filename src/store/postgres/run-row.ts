import { crc32 } from 'node:zlib';
import { type Clock, systemClock } from '../../values/clock.ts';
import type { Due } from '../due.ts';
import type { EncodedHead } from '../encoding/encode.ts';
import type { RunFacts } from '../rules/decision.ts';
import type { Lease } from '../rules/lease.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession, Row } from './pool.ts';
import type { Tables } from './schema.ts';

/** The facts of a stored record that are known without reading its texts. */
export interface RowRecord {
  /** The token of the save that wrote the whole record: its parts are found by it. */
  readonly body: number;
  readonly version: number;
  readonly revision: number;
  readonly messageCount: number;
  /** The pieces that its head names, by their bundle, as far as that is known. */
  readonly pieces: ReadonlyMap<string, number>;
}

/** A row of `runs`. Each write gives it a new token: an equal token proves an unchanged row. */
export interface RowState {
  readonly token: number;
  /** Undefined until the first claim of the run. */
  readonly lease: Lease | undefined;
  readonly attempts: number;
  /** Undefined if the run is only claimed. */
  readonly record: RowRecord | undefined;
  readonly due: Due;
  /** The body of the kept record of an earlier run of this id, if there is one. */
  readonly endedBody?: number | undefined;
}

/** The state that a write found. */
export interface FoundRow {
  /** Undefined if there is no row. */
  readonly run: RowState | undefined;
  /** The lease clock, ms. */
  readonly now: number;
  /** As in `RunState`, also without a row. */
  readonly endedBody: number | undefined;
  /** The higher epoch of a kept outcome and of a kept record. */
  readonly outcomeEpoch: number;
  /** The number of the newest waiting command; undefined if it was not asked for. */
  readonly newest: number | undefined;
}

/** Returns all facts of a run, as the server has them. */
export function factsFound({ run, now, outcomeEpoch, newest }: FoundRow): RunFacts {
  // Only `leave` needs the inbox: `send` decides in its own statement.
  const inbox = newest === undefined ? undefined : { size: 0, chars: 0, newest, has: () => false };
  return { ...factsKnown(run), expiresAt: run?.lease?.expiresAt ?? 0, now, keptEpoch: outcomeEpoch, inbox };
}

/**
 * Returns the facts of a run that this store wrote last. They have no times, which are the server's: a decision that needs one
 * asks the server.
 */
export function factsKnown(run: RowState | undefined): RunFacts {
  const { lease = null, record = null, attempts = 0 } = run ?? {};
  return { lease, record, attempts, due: run ? run.due : 0 };
}

/** The clocks of leases and outcomes. */
export interface Times {
  /** SQL of the lease clock, ms. */
  lease(parameters: Parameters): string;
  /** Wall clock, ms. */
  wall(): number;
  /** SQL of the wall clock that decides which runs are due, ms: all hosts must agree on it. */
  due(parameters: Parameters): string;
}

/** Returns the clocks of a PostgreSQL store: the server's for leases, unless a test has a clock of its own. */
export function serverTimes(clock: Clock): Times {
  const server = '(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::pg_catalog.float8';
  const isServers = clock === systemClock;
  return {
    lease: (parameters) => (isServers ? server : `${parameters.add(clock.monotonic())}::pg_catalog.float8`),
    wall: () => clock.now(),
    // The same for a whole statement, so that an index can be used.
    due: (parameters) =>
      isServers
        ? '(extract(epoch FROM pg_catalog.statement_timestamp()) * 1000)::numeric'
        : `${parameters.add(clock.now())}::numeric`,
  };
}

/**
 * Reads the state of some runs in PostgreSQL, without their messages. It may be outdated at once: a write checks the token
 * again.
 */
export async function look(
  session: PoolSession,
  runIds: readonly string[],
  { tables, times, withInbox }: { readonly tables: Tables; readonly times: Times; readonly withInbox: boolean },
): Promise<Map<string, FoundRow>> {
  const parameters = new Parameters();
  const ids = [...new Set(runIds)];
  const wall = `${parameters.add(times.wall())}::pg_catalog.float8`;
  const text = `
    SELECT i.id, r.token, r.body, r.due_at, ${withInbox ? newestOf(tables) : 'NULL'} AS newest, r.owner, r.epoch, r.attempts, r.expires_at, r.deployment, r.version, r.revision, r.message_count,
      e.body AS ended_body, greatest(o.epoch, CASE WHEN e.keep_until > ${wall} THEN e.epoch END) AS outcome_epoch, ${times.lease(parameters)} AS now
    FROM pg_catalog.unnest(${parameters.add(ids.map(hexOf))}::pg_catalog.text[]) AS i (id)
    LEFT JOIN ${tables.runs} r ON r.run_id = pg_catalog.decode(i.id, 'hex')
    LEFT JOIN ${tables.outcomes} o ON o.run_id = pg_catalog.decode(i.id, 'hex') AND o.until > ${wall}
    LEFT JOIN ${tables.ended} e ON e.run_id = pg_catalog.decode(i.id, 'hex')`;
  const rows = await session.query(text, parameters.values);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return new Map(ids.map((runId) => [runId, found(byId.get(hexOf(runId)) ?? {})]));
}

const newestOf = ({ commands }: Tables) =>
  `(SELECT coalesce(pg_catalog.max(c.no), 0) FROM ${commands} c WHERE c.run_id = r.run_id)`;

function found(row: Row): FoundRow {
  const newest = row.newest == null ? undefined : Number(row.newest);
  const endedBody = row.ended_body == null ? undefined : Number(row.ended_body);
  const run = stateOf(row);
  const outcomeEpoch = Number(row.outcome_epoch ?? 0);
  return { run: run && { ...run, endedBody }, endedBody, now: Number(row.now), outcomeEpoch, newest };
}

function stateOf(row: Row): RowState | undefined {
  if (row.token == null) return undefined;
  const { token, body, version, revision, message_count: messageCount } = row;
  const record =
    body == null
      ? undefined
      : {
          body: Number(body),
          version: Number(version),
          revision: Number(revision),
          messageCount: Number(messageCount),
          pieces: new Map<string, number>(),
        };
  return { token: Number(token), lease: leaseOf(row), attempts: Number(row.attempts), record, due: dueOf(row) };
}

/** Returns when the run of a PostgreSQL row is due. */
export const dueOf = ({ due_at: due }: Row): Due => (due == null ? null : Number(due));

/** Returns the lease in a PostgreSQL row of a run. */
export function leaseOf({ owner, epoch, attempts, expires_at: expiresAt, deployment }: Row): Lease | undefined {
  if (epoch == null) return undefined;
  return {
    owner: owner == null ? null : (JSON.parse(owner) as string),
    epoch: Number(epoch),
    attempts: Number(attempts),
    expiresAt: Number(expiresAt),
    ...(deployment == null ? {} : { deployment: Number(deployment) }),
  };
}

/** Returns the name of an owner as a text for PostgreSQL. An owner is any string; PostgreSQL can hold its JSON. */
export const ownerText = (owner: string | null) => (owner === null ? null : JSON.stringify(owner));

/** Returns a run id as PostgreSQL gets it: the hex of its bytes. */
export const hexOf = (runId: string) => Buffer.from(runId, 'utf8').toString('hex');

/** Returns the run id of a hex text, the inverse of `hexOf`. */
export const runIdOfRow = (hex: string) => Buffer.from(hex, 'hex').toString('utf8');

/**
 * Computes the checksum of a head's row in PostgreSQL. It also covers the columns: a flipped bit in a count is damage like
 * one in the text.
 */
export function headChecksum(
  head: Pick<EncodedHead, 'version' | 'revision' | 'updatedAt' | 'head'>,
  place: { readonly body: number; readonly messageCount: number },
): number {
  return crc32(
    head.head,
    crc32(`${place.body},${head.version},${head.revision},${head.updatedAt},${place.messageCount}`),
  );
}
