import { crc32 } from 'node:zlib';
import type { MessageRow } from '../encoding/encryption.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { Lease, Ownership } from '../lease.ts';
import type { StoreWrite } from '../store-driver.ts';
import type { Change as RunChange, RunFacts } from '../transitions.ts';
import type { Found, RunState, StoredRecord } from './state.ts';

/** What a write does to the rows of its run. */
export interface Change {
  readonly runId: string;
  /** The token of the row that this follows; null: there was no row. Where it is another by now, nothing is written. */
  readonly seen: number | null;
  /** `none`: there is no row, and there will be none. */
  readonly kind: 'put' | 'remove' | 'none';
  /** Until when it holds is the server's to say. */
  readonly lease: Ownership | undefined;
  /** Counts as the lease's; kept for a run without a lease too. */
  readonly attempts: number;
  /** From now on the lease has this many ms. */
  readonly ttlMs?: number | undefined;
  readonly head?: StoredBody | undefined;
  /** A whole record: its parts get a new body. */
  readonly start?: StoredBody['start'];
  /** The record as it is before. */
  readonly record: StoredRecord | undefined;
  readonly rows?: readonly MessageRow[] | undefined;
  readonly outcome?: KeptOutcome | undefined;
}

export interface KeptOutcome {
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
  readonly epoch: number;
  readonly checksum: number;
}

/** All facts of a run, once the server was asked. */
export function factsFound({ run, now, outcomeEpoch }: Found): RunFacts {
  return { ...factsKnown(run), expiresAt: run?.lease?.expiresAt ?? 0, now, keptEpoch: outcomeEpoch };
}

/** What this store knows of a run that it wrote last. The times are the server's: a decision that needs them needs a look. */
export function factsKnown(run: RunState | undefined): RunFacts {
  return { lease: run?.lease ?? null, record: run?.record ?? null, attempts: run?.attempts ?? 0 };
}

/** The change of the rows of a run; undefined when there is nothing to remove. @param run its row, undefined without one */
export function rowChange(
  run: RunState | undefined,
  change: RunChange,
  { runId, body }: Pick<StoreWrite, 'runId' | 'body'>,
): Change | undefined {
  const { token: seen = null, lease: found, record } = run ?? {};
  const base = { runId, seen, kind: 'put' as const, lease: found, attempts: run?.attempts ?? 0, record };
  if (change.remove) return run && { ...base, kind: 'remove' };
  if (change.keep) {
    const outcome = { ...change.keep, checksum: crc32(change.keep.text) };
    return { ...base, kind: run ? 'put' : 'none', outcome };
  }
  const lease = change.lease ?? found;
  const owned = { ...base, lease, attempts: change.lease?.attempts ?? base.attempts, ttlMs: change.ttlMs };
  if (!change.record || !body) return owned;
  // A run without a lease counts the attempts of its record.
  const attempts = lease ? lease.attempts : (body.attempts ?? 0);
  return { ...owned, attempts, head: body, start: body.start, rows: body.rows };
}

/** The row as it is when a change has landed. */
export function leaseAfter({ lease }: Change): Lease | undefined {
  return lease && { ...lease, expiresAt: Number.NEGATIVE_INFINITY };
}

/** A whole record gets a new body: the token of its save. @param token the one that the change gives its row */
export function recordAfter({ head, start, record }: Change, token: number): StoredRecord | undefined {
  const body = start ? token : record?.body;
  if (!head || body === undefined) return record;
  const { version, revision, messageCount, blobs } = head;
  const known = start ? undefined : record?.pieces;
  const pieces = new Map<string, number>();
  for (const name of blobs.inHead) pieces.set(name, known?.get(name) ?? token);
  return { body, version, revision, messageCount, pieces };
}
