import type { Spend, Usage } from '../values/usage.ts';

export type { Spend } from '../values/usage.ts';

/** A model call that is about to be made. */
export interface CallEstimate {
  /**
   * The key of the turn: `runId:birth:turn`, in a pipeline `runId:birth:phase.turn`. A turn that is repeated after a crash has the
   * same key; another run under the same id has others.
   */
  readonly key: string;
  readonly runId: string;
  readonly modelTier: string;
  /** The model that is called: `provider/modelId`. */
  readonly model: string;
  /** The estimated input tokens, by the size of the text, not by a tokenizer. */
  readonly inputTokens: number;
}

/** What a model call used. */
export interface CallUse {
  readonly usage: Usage;
  /** The duration of the call, failed attempts included. */
  readonly seconds: number;
}

/** What a budget needs to know of a running call. Plain JSON. */
export interface Reservation {
  readonly key: string;
  readonly callerId: string;
  readonly modelTier: string;
  readonly model: string;
}

/**
 * Decides which caller may spend how much. The executor calls `check` before a run does anything. Around each model call it
 * calls `reserve`, then `commit` with the use, or `refund` if the call was never made or used nothing.
 *
 * After a crash between two of these calls the same turn is made again with the same key. A reservation of a known key
 * replaces the earlier reservation, and a commit replaces the earlier count. So a turn counts once.
 */
export interface Budget {
  /** Processes of other computers do not see it: an executor on a store that they share warns of that. Absent: they do. */
  readonly isLocal?: boolean;
  /** @throws {BUDGET_EXCEEDED} if this caller may not start, or continue, a run */
  check(callerId: string): Promise<void>;
  /** @throws {BUDGET_EXCEEDED} if nothing is left, or not enough beside the running calls: the call is not made */
  reserve(callerId: string, estimate: CallEstimate): Promise<Reservation>;
  /** @returns what the call was counted as; it becomes part of the run's record and result */
  commit(reservation: Reservation, used: CallUse): Promise<Spend>;
  refund(reservation: Reservation): Promise<void>;
  /** Called when a run continues from its record: tells a budget without a durable store what the run has spent so far. */
  restore?(callerId: string, run: EarlierSpend): Promise<void>;
  /** Says what a caller has used and may use. Only readers ask, for example Studio. */
  standing?(callerId: string): Promise<BudgetStanding>;
}

/** What a run has spent before this process, by its record. */
export interface EarlierSpend {
  readonly runId: string;
  /** The part of the keys of its calls between run id and turn; absent: an older version began the run, and they have none. */
  readonly birth?: string | undefined;
  readonly spend: Spend;
}

/** What a caller has used, and may use. */
export interface BudgetStanding {
  /** Within the window. */
  readonly spent: Spend;
  /** Reserved by calls that are running. */
  readonly reserved: Spend;
  /** An amount without a limit is absent. */
  readonly limits: { readonly [K in keyof Spend]?: number };
  /** The length of the window, ms. */
  readonly windowMs: number;
}
