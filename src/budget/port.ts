import type { Spend, Usage } from '../values/usage.ts';

export type { Spend } from '../values/usage.ts';

/** A model call that is about to be made. */
export interface CallEstimate {
  /** Names the turn (`runId:turn`, in a pipeline `runId:phase.turn`): the same in every process, so that a turn made again after a crash counts once. */
  readonly key: string;
  readonly runId: string;
  readonly modelTier: string;
  /** Who serves the call: `provider/modelId`. */
  readonly model: string;
  /** What the request is likely to have; from the size of its text, not from a tokenizer. */
  readonly inputTokens: number;
}

/** What a model call used. */
export interface CallUse {
  readonly usage: Usage;
  /** How long it took, failed attempts included. */
  readonly seconds: number;
}

/** What a budget remembers of a call that is under way. Plain JSON. */
export interface Reservation {
  readonly key: string;
  readonly callerId: string;
  readonly modelTier: string;
  readonly model: string;
}

/**
 * Says who may spend how much. Asked before a run does anything, and around each of its model calls: `reserve`, then
 * `commit` with what was used or `refund` when the call was never made or used nothing.
 *
 * A crash between two of these calls makes the same turn again, with the same key: reserving a key that is known takes
 * the place of the earlier reservation, committing it that of the earlier spend. So a turn counts once.
 */
export interface Budget {
  /** @throws {BudgetExceededError} when this caller may not begin, or go on with, a run */
  check(callerId: string): Promise<void>;
  /** @throws {BudgetExceededError} when nothing is left, or not enough beside the calls under way: it is not made */
  reserve(callerId: string, estimate: CallEstimate): Promise<Reservation>;
  /** @returns what the call was counted as: it becomes part of the run's record and result */
  commit(reservation: Reservation, used: CallUse): Promise<Spend>;
  refund(reservation: Reservation): Promise<void>;
  /** A run goes on from its record: a budget without a memory of its own learns here what the run has spent so far. */
  restore?(callerId: string, run: { readonly runId: string; readonly spend: Spend }): Promise<void>;
}
