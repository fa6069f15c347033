import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunDelta } from '../record/delta.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import type { Command, SentCommand } from '../run/command.ts';
import type { RunOutcome } from '../run/result.ts';
import { kindOf, missingMethods } from '../values/known-options.ts';

/** The right to write a run's record: whoever holds the highest epoch. `attempts` counts starts without progress. */
export type Claim = {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly attempts: number;
};

export interface WriteOptions {
  /** Refuse the write (LeaseLostError) when this is no longer the newest claim. */
  readonly claim?: Claim | undefined;
  /** Already aborted = reject and write nothing. */
  readonly signal?: AbortSignal | undefined;
}

export interface ReleaseOptions {
  /** What the run's count of attempts goes back to: the start that the claim counted was none. */
  readonly attempts?: number | undefined;
  /**
   * The record cannot be read, and why. From then on it is listed as quarantined with this reason, `claim` and `append` throw it as a
   * CheckpointCorruptError, and nothing of it is written. A `save` of the whole record makes it a record like any other.
   */
  readonly damage?: string | undefined;
}

/** The last entry of a page; the next page begins after it. */
export type Cursor = { readonly updatedAt: number; readonly runId: string };
export type ListOptions = { readonly after?: Cursor; readonly limit?: number; readonly signal?: AbortSignal };

/**
 * The four methods that make a store. A record that is there is a run to recover; one that is gone is a run that ended.
 * Writes of one run take effect in the order in which they were asked for, also after one that nobody waits for any more.
 */
export interface CheckpointStore {
  save(record: RunCheckpoint, options?: WriteOptions): Promise<void>;
  load(runId: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<RunCheckpoint | null>;
  delete(runId: string, options?: WriteOptions): Promise<void>;
  /** Ordered by `updatedAt`, then `runId`; a record that cannot be read is listed as quarantined. */
  listInterrupted(options?: ListOptions): Promise<readonly InterruptedRun[]>;
}

/** A store that writes only what is new. A revision already there is a success, a gap a RevisionGapError. */
export interface AppendingStore extends CheckpointStore {
  append(delta: RunDelta, options?: WriteOptions): Promise<void>;
}

/** A store that knows who may write. `claim` works before a record exists; null = somebody else holds a live claim. */
export interface OwningStore extends CheckpointStore {
  claim(runId: string, owner: string, ttlMs: number): Promise<Claim | null>;
  renew(claim: Claim, ttlMs: number): Promise<Claim>;
  release(claim: Claim, options?: ReleaseOptions): Promise<void>;
}

/** A store that keeps answers after the record is gone, so that a repeated `start` can give them again. */
export interface OutcomeStore extends CheckpointStore {
  /** @param untilMs wall clock, ms */
  keepOutcome(runId: string, outcome: RunOutcome, untilMs: number, options?: WriteOptions): Promise<void>;
  outcome(runId: string): Promise<RunOutcome | null>;
  /** Removes answers whose time is over, which stores also do by the way; with `dryRun` only counts them. @returns how many */
  forgetOutcomes?(options?: { readonly dryRun?: boolean }): Promise<number>;
}

/** A store that carries commands to whoever works on a run, from any process. They go when the record goes. */
export interface ControlStore extends OwningStore {
  /**
   * Leaves a command for a run. One with an `id` that waits already is a success.
   * @throws {CheckpointMissingError} when there is no record of it @throws {UndeliveredError} when 1,000 wait already
   */
  send(runId: string, command: Command): Promise<void>;
  /** What waits for one run, or for the runs that `owner` has claimed: the oldest first, up to 1,000. */
  inbox(of: InboxOf): Promise<readonly SentCommand[]>;
  /** Takes commands out of the run's inbox. @throws {LeaseLostError} when this is no longer the newest claim */
  acknowledge(claim: Claim, ids: readonly string[]): Promise<void>;
}

export type InboxOf = { readonly owner: string } | { readonly runId: string };

const has = (store: CheckpointStore, method: string) =>
  typeof (store as never as Record<string, unknown>)[method] === 'function';
export const isAppending = (store: CheckpointStore): store is AppendingStore => has(store, 'append');
export const isOwning = (store: CheckpointStore): store is OwningStore => has(store, 'claim');
export const isControlling = (store: CheckpointStore): store is ControlStore => has(store, 'inbox');
export const isKeepingOutcomes = (store: CheckpointStore): store is OutcomeStore => has(store, 'keepOutcome');

/**
 * @param name of the option, for the error
 * @throws {TypeError} for a value that lacks one of the four methods: runs on it would not be durable
 */
export function checkStore(name: string, store: unknown): asserts store is CheckpointStore {
  const missing = missingMethods(store, ['save', 'load', 'delete', 'listInterrupted']);
  if (missing.length === 0) return;
  const got = missing.length < 4 ? `an object; it has no ${missing.join(', ')}` : kindOf(store);
  throw new TypeError(
    `${name} must be a store, not ${got}; make one, for example sqliteStore({ path: 'runs.db' }), or leave it out`,
  );
}
