import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunDelta } from '../record/delta.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import type { Command, SentCommand } from '../run/command.ts';
import type { RunOutcome } from '../run/result.ts';
import { kindOf, missingMethods } from '../values/known-options.ts';

/** The right to write a run's record: the owner with the highest epoch has it. `attempts` counts starts without progress. */
export type Claim = {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly attempts: number;
};

export interface WriteOptions {
  /** Refuse the write (LeaseLostError) if this is no longer the newest claim. */
  readonly claim?: Claim | undefined;
  /** Already aborted = reject and write nothing. */
  readonly signal?: AbortSignal | undefined;
}

export interface ReleaseOptions {
  /** The run's new count of attempts: the start that the claim counted did not happen. */
  readonly attempts?: number | undefined;
  /**
   * The record cannot be read, and why. From then on it is listed as quarantined with this reason, `claim` and `append` throw
   * it as a CheckpointCorruptError, and nothing of it is written. A `save` of the whole record makes it an ordinary record
   * again.
   */
  readonly damage?: string | undefined;
}

/** The last entry of a page; the next page begins after it. */
export type Cursor = { readonly updatedAt: number; readonly runId: string };
export type ListOptions = { readonly after?: Cursor; readonly limit?: number; readonly signal?: AbortSignal };

/**
 * The four methods that make a store. A stored record is a run to recover; a deleted one is a run that ended. Writes of one
 * run take effect in the order of the calls, even if a caller no longer waits for one.
 */
export interface CheckpointStore {
  save(record: RunCheckpoint, options?: WriteOptions): Promise<void>;
  load(runId: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<RunCheckpoint | null>;
  delete(runId: string, options?: WriteOptions): Promise<void>;
  /** Ordered by `updatedAt`, then `runId`; a record that cannot be read is listed as quarantined. */
  listInterrupted(options?: ListOptions): Promise<readonly InterruptedRun[]>;
}

/** A store that writes only new messages. A revision that is already stored is a success, a gap a RevisionGapError. */
export interface AppendingStore extends CheckpointStore {
  append(delta: RunDelta, options?: WriteOptions): Promise<void>;
}

/** A store that checks who may write. `claim` works before a record exists; null = another owner holds a live claim. */
export interface OwningStore extends CheckpointStore {
  claim(runId: string, owner: string, ttlMs: number): Promise<Claim | null>;
  renew(claim: Claim, ttlMs: number): Promise<Claim>;
  release(claim: Claim, options?: ReleaseOptions): Promise<void>;
}

/** A store that keeps answers after the record is deleted, so that a repeated `start` returns them again. */
export interface OutcomeStore extends CheckpointStore {
  /** @param untilMs wall clock, ms */
  keepOutcome(runId: string, outcome: RunOutcome, untilMs: number, options?: WriteOptions): Promise<void>;
  outcome(runId: string): Promise<RunOutcome | null>;
  /** Removes expired answers, which stores also do by themselves; with `dryRun` only counts them. @returns how many */
  forgetOutcomes?(options?: { readonly dryRun?: boolean }): Promise<number>;
}

/** A store that carries commands to the process that works on a run, from any process. They are deleted with the record. */
export interface ControlStore extends OwningStore {
  /**
   * Stores a command for a run. If one with the same `id` waits already, the call succeeds.
   * @throws {CheckpointMissingError} if there is no record of it @throws {UndeliveredError} if 1,000 wait already
   */
  send(runId: string, command: Command): Promise<void>;
  /** The commands that wait for one run, or for the runs that `owner` has claimed: the oldest first, up to 1,000. */
  inbox(of: InboxOf): Promise<readonly SentCommand[]>;
  /** Removes commands from the run's inbox. @throws {LeaseLostError} if this is no longer the newest claim */
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
 * Checks that a value has the methods of a CheckpointStore.
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
