import type { Clock } from '../values/clock.ts';
import type { BudgetAmounts } from './amounts.ts';

/** What counts against the limits of a caller. */
export interface StandingAmounts {
  /** By ended calls within the window. */
  readonly spent: BudgetAmounts;
  /** By running calls. */
  readonly reserved: BudgetAmounts;
}

/** What each call of a budget to its store passes. */
export interface BudgetTerms {
  readonly windowMs: number;
  /** An older reservation belongs to a process that died. */
  readonly reservationMs: number;
  readonly clock: Clock;
}

/** A call of a run. */
export interface BudgetCall {
  readonly callerId: string;
  readonly key: string;
  /** The key without its turn: it names the run. */
  readonly runId: string;
}

/** Amounts that leave the window. */
export interface LeavingAmounts {
  /** From now, ms. */
  readonly inMs: number;
  readonly amounts: BudgetAmounts;
}

/**
 * Where a budget is stored: in memory, or with `sqliteBudget` or `postgresBudget`. Each operation is atomic for all processes that share the
 * store. Amounts are finite and not negative.
 */
export interface BudgetStore {
  /** Processes of other computers do not see it: each computer, or each process, has a budget of its own. Absent: they do. */
  readonly isLocal?: boolean;
  standing(callerId: string, terms: BudgetTerms): Promise<StandingAmounts>;
  /** The amounts of a caller that leave the window next, oldest first; if there are many, the first of them are enough. */
  leaving(callerId: string, terms: BudgetTerms): Promise<readonly LeavingAmounts[]>;
  /**
   * Opens a reservation if `isAllowed` agrees. It gets the standing without the reservation of this key.
   * @returns the standing for which it was refused; undefined = the reservation is open
   */
  reserve(call: BudgetCall, wish: ReservationWish, terms: BudgetTerms): Promise<StandingAmounts | undefined>;
  /**
   * Closes the reservation of a call and counts the call once: this replaces an earlier count of the call.
   * @param amountsFor returns what is counted, from what was reserved
   * @returns what was counted
   */
  commit(
    call: BudgetCall,
    amountsFor: (reserved: BudgetAmounts) => BudgetAmounts,
    terms: BudgetTerms,
  ): Promise<BudgetAmounts>;
  /** Closes the reservation of a call; an earlier count of the call stays. */
  refund(call: BudgetCall, terms: BudgetTerms): Promise<void>;
  /** Counts what a run has spent by its record, as far as it is not counted yet. */
  restore(run: RunSpend, terms: BudgetTerms): Promise<void>;
}

export interface ReservationWish {
  readonly estimate: BudgetAmounts;
  readonly isAllowed: (standing: StandingAmounts) => boolean;
}

export interface RunSpend {
  readonly callerId: string;
  /** As the keys of its calls name it. */
  readonly runId: string;
  /** Over the whole life of the run. */
  readonly spent: BudgetAmounts;
}
