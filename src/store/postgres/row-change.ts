import { crc32 } from 'node:zlib';
import type { Due } from '../due.ts';
import type { MessageRow } from '../encoding/encryption.ts';
import type { Filed } from '../encoding/filed.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { StoredJournal } from '../encoding/stored-journal.ts';
import type { EndedToKeep, EndToDeliver, Change as RunChange } from '../rules/decision.ts';
import type { Lease, Ownership } from '../rules/lease.ts';
import { withoutColumns } from './message-rows.ts';
import type { RowRecord, RowState } from './run-row.ts';

/** The change of the rows of a run that a write makes. */
export interface RowChange {
  readonly runId: string;
  /**
   * The token of the row that the decision used; null: there was no row. If the row has another token now, nothing is written.
   */
  readonly seen: number | null;
  /** `none`: there is no row, and none will be written. `end`: the row is moved to those of ended runs. */
  readonly kind: 'put' | 'remove' | 'end' | 'none';
  /** The server computes when it expires. */
  readonly lease: Ownership | undefined;
  /** Equal to the lease's; also kept for a run without a lease. */
  readonly attempts: number;
  /** From now on the lease is valid for this many ms. */
  readonly ttlMs?: number | undefined;
  readonly head?: StoredBody | undefined;
  /** A whole record: its parts get a new body. */
  readonly start?: StoredBody['start'];
  /** The record before the change. */
  readonly record: RowRecord | undefined;
  /** When the run is due after the change, and before. */
  readonly due: Due;
  readonly dueBefore: Due;
  /** Of a whole record: under what the run is found. */
  readonly filed?: Filed | undefined;
  /** The definition by which a parked run is found; empty = none. */
  readonly definition?: string | undefined;
  /** Why the run is not due; absent: as before. */
  readonly pausedBy?: string | undefined;
  readonly rows?: readonly MessageRow[] | undefined;
  readonly journal?: StoredJournal | undefined;
  readonly outcome?: KeptOutcome | undefined;
  readonly ended?: EndedToKeep | undefined;
  readonly deliver?: EndToDeliver | undefined;
  /** The body of the kept record of an earlier run, which a whole record replaces. */
  readonly endedBody: number | undefined;
  /** That record is of the same run, which continues: its journal stays. */
  readonly keepsJournal?: boolean | undefined;
}

interface KeptOutcome {
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
  readonly epoch: number;
  readonly checksum: number;
}

/**
 * Returns the change of a run's rows in PostgreSQL for the change that a decision asks for; undefined if there is nothing to
 * remove.
 * @param run its row, undefined without one
 */
export function rowChange(
  run: RowState | undefined,
  change: RunChange,
  { runId, body, endedBody }: Pick<RowChange, 'runId' | 'endedBody'> & { readonly body: StoredBody | undefined },
): RowChange | undefined {
  const { token: seen = null, lease: found, record } = run ?? {};
  const dueBefore = run ? run.due : 0;
  const due = change.due === undefined ? dueBefore : change.due;
  const attemptsBefore = run?.attempts ?? 0;
  const dues = { due, dueBefore };
  const base = {
    runId,
    seen,
    kind: 'put' as const,
    lease: found,
    attempts: attemptsBefore,
    record,
    endedBody,
    ...dues,
    deliver: change.deliver,
  };
  const { keep, end } = change;
  const outcome = keep && { ...keep, checksum: crc32(keep.text) };
  // An outcome that is kept has the epoch itself.
  if (change.remove) return run && { ...base, kind: 'remove', outcome, lease: outcome ? undefined : found };
  if (end) return run && { ...base, kind: 'end', outcome, ended: end };
  if (outcome) return { ...base, kind: run ? 'put' : 'none', outcome };
  const lease = change.lease ?? found;
  const owned = { ...base, lease, attempts: change.lease?.attempts ?? base.attempts, ttlMs: change.ttlMs };
  if (!change.record || !body) return owned;
  // A run without a lease counts the attempts of its record.
  const attempts = lease ? lease.attempts : (body.attempts ?? 0);
  const { start, rows, journal } = body;
  const { filed, definition, pausedBy, keepsJournal } = change;
  const place = { filed, definition, pausedBy };
  return { ...owned, attempts, head: withoutColumns(body), start, rows, journal, ...place, keepsJournal };
}

/** Returns the lease of a run after its change was stored. */
export function leaseAfter({ lease }: RowChange): Lease | undefined {
  return lease && { ...lease, expiresAt: Number.NEGATIVE_INFINITY };
}

/**
 * Returns the facts of a record in PostgreSQL after a change was stored. A whole record gets a new body: the token of its
 * save.
 * @param token the new token of its row
 */
export function recordAfter({ head, start, record }: RowChange, token: number): RowRecord | undefined {
  const body = start ? token : record?.body;
  if (!head || body === undefined) return record;
  const { version, revision, messageCount, blobs } = head;
  const known = start ? undefined : record?.pieces;
  const pieces = new Map<string, number>();
  for (const name of blobs.inHead) pieces.set(name, known?.get(name) ?? token);
  return { body, version, revision, messageCount, pieces };
}
