import { crc32 } from 'node:zlib';
import type { Pieces } from '../encoding/blob-refs.ts';
import type { EncodedDelta, EncodedHead, EncodedRecord } from '../encoding/encode.ts';
import type { MessageRow, MessageRows } from '../encoding/encryption.ts';
import { checkReplaceable, isNewRevision } from '../encoding/revision.ts';
import { checkClaim, checkWrite, freed, grantLease, isNewest, type Lease, refuseDamaged, sound } from '../lease.ts';
import type { Claim, ReleaseOptions } from '../port.ts';
import type { Found, RunState, StoredRecord } from './state.ts';

/** The changes of a write to its run, after its decision. */
export interface Change {
  readonly runId: string;
  /**
   * The token of the row that the decision used; null: there was no row. If the row has another token now, nothing is written.
   */
  readonly seen: number | null;
  /** `none`: there is no row, and none will be written. */
  readonly kind: 'put' | 'remove' | 'none';
  readonly lease: Lease | undefined;
  /** Equal to the lease's; also kept for a run that was never claimed. */
  readonly attempts: number;
  /** From now on the lease is valid for this many ms. */
  readonly ttlMs?: number;
  readonly head?: EncodedHead & Pieces & { readonly messageCount: number };
  /** A whole record: its parts get a new body. */
  readonly start?: { readonly meta: string; readonly extras: string | null };
  /** The record before the change. */
  readonly record: StoredRecord | undefined;
  readonly rows?: readonly MessageRow[];
  readonly outcome?: KeptOutcome;
}

export interface KeptOutcome {
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
  readonly epoch: number;
  readonly checksum: number;
}

/** The result of a decision: a change with its answer, or an answer at once. */
export interface Decision<T> {
  readonly value: T;
  readonly change?: Change;
}

/** Decides a write. @throws errors of Pawl, if it is refused */
export type Decide<T> = (found: Found) => Decision<T>;

const nothing: Decision<void> = { value: undefined };

/** Decides, for PostgreSQL, the change of rows that saves a whole record. */
export function saveRecord(record: EncodedRecord & Pieces & MessageRows, claim: Claim | undefined): Decide<void> {
  const { runId, meta, extras, rows } = record;
  return (found) => {
    const before = writable(runId, found, claim);
    const base = { ...before, lease: sound(before.lease) };
    checkReplaceable(runId, found.run?.record?.version);
    return changed({ ...base, ...counted(base, record), head: record, start: { meta, extras }, rows });
  };
}

/** Decides, for PostgreSQL, the change of rows that appends a delta. */
export function appendDelta(delta: EncodedDelta & Pieces & MessageRows, claim: Claim | undefined): Decide<void> {
  const { runId, rows } = delta;
  return (found) => {
    refuseDamaged(found.run?.lease);
    const base = writable(runId, found, claim);
    const record = found.run?.record;
    checkReplaceable(runId, record?.version);
    if (!isNewRevision(delta, record)) return nothing;
    return changed({ ...base, ...counted(base, delta), head: delta, rows });
  };
}

/** Decides, for PostgreSQL, the change of rows that deletes a run. */
export function deleteRun(runId: string, claim: Claim | undefined): Decide<void> {
  return (found) => {
    const base = writable(runId, found, claim);
    return found.run ? changed({ ...base, kind: 'remove' }) : nothing;
  };
}

/** Decides, for PostgreSQL, the change of rows that keeps an outcome. */
export function keepOutcome(
  kept: { readonly runId: string; readonly text: string; readonly untilMs: number },
  claim: Claim | undefined,
): Decide<void> {
  const { runId, text, untilMs } = kept;
  const checksum = crc32(text);
  return (found) => {
    const base = writable(runId, found, claim);
    const epoch = base.lease?.epoch ?? found.outcomeEpoch;
    return changed({ ...base, kind: found.run ? 'put' : 'none', outcome: { text, untilMs, epoch, checksum } });
  };
}

/** Decides, for PostgreSQL, the change of rows that grants a claim. */
export function claimRun(runId: string, owner: string, ttlMs: number): Decide<Claim | null> {
  return ({ run, now, outcomeEpoch }) => {
    const last = { lastEpoch: outcomeEpoch, lastAttempts: run?.attempts ?? 0 };
    const lease = grantLease(run?.lease, { owner, ttlMs, now, ...last });
    if (!lease) return { value: null };
    const { epoch, attempts } = lease;
    const change = { ...unchanged(runId, run), lease, attempts, ttlMs };
    return { value: { runId, owner, epoch, attempts }, change };
  };
}

/** Decides, for PostgreSQL, the change of rows that renews a claim. */
export function renewClaim(claim: Claim, ttlMs: number): Decide<Claim> {
  return ({ run }) => {
    const { attempts } = checkClaim(run?.lease, claim);
    return { value: { ...claim, attempts }, change: { ...unchanged(claim.runId, run), ttlMs } };
  };
}

/** Decides, for PostgreSQL, the change of rows that releases a claim. */
export function releaseClaim(claim: Claim, options?: ReleaseOptions): Decide<void> {
  return ({ run }) => {
    const lease = run?.lease;
    if (!lease || !isNewest(lease, claim)) return nothing;
    const left = freed(lease, options);
    return changed({ ...unchanged(claim.runId, run), lease: left, attempts: left.attempts });
  };
}

/** The run's row, after the check that this write is allowed. */
function writable(runId: string, { run, now }: Found, claim: Claim | undefined): Change {
  checkWrite(run?.lease, { runId, claim, now });
  return unchanged(runId, run);
}

function unchanged(runId: string, run: RunState | undefined): Change {
  const { token: seen = null, lease, attempts = 0, record } = run ?? {};
  return { runId, seen, kind: 'put', lease, attempts, record };
}

const changed = (change: Change): Decision<void> => ({ value: undefined, change });

/** The lease has the correct count: `claim` counts before any of the run is loaded. */
function counted({ lease, attempts: known }: Change, { attempts }: EncodedHead): Pick<Change, 'lease' | 'attempts'> {
  const count = attempts ?? (lease ? known : 0);
  return { lease: lease && { ...lease, attempts: count }, attempts: count };
}

/**
 * The row of a record after a change. A whole record gets a new body: the token of its save.
 * @param token the new token of its row
 */
export function recordAfter({ head, start, record }: Change, token: number): StoredRecord | undefined {
  const body = start ? token : record?.body;
  if (!head || body === undefined) return record;
  const { version, revision, messageCount, inHead } = head;
  const known = start ? undefined : record?.pieces;
  const pieces = new Map<string, number>();
  for (const name of inHead) pieces.set(name, known?.get(name) ?? token);
  return { body, version, revision, messageCount, pieces };
}
