import type { Clock } from '../values/clock.ts';
import type { BudgetAmounts } from './amounts.ts';

/** What counts against the limits of a caller. */
export interface StandingAmounts {
  /** By calls within the window that are over. */
  readonly spent: BudgetAmounts;
  /** By calls that are under way. */
  readonly reserved: BudgetAmounts;
}

/** What all that a budget asks of its store has in common. */
export interface BudgetTerms {
  readonly windowMs: number;
  /** A reservation that is older is of a process that died. */
  readonly reservationMs: number;
  readonly clock: Clock;
}

/** A call of a run. */
export interface BudgetCall {
  readonly callerId: string;
  readonly key: string;
  readonly runId: string;
}

/** Spending that leaves the window. */
export interface LeavingAmounts {
  /** From now, ms. */
  readonly inMs: number;
  readonly amounts: BudgetAmounts;
}

/**
 * Where a budget keeps its books: in memory, or with `sqliteBudget`. What it does for one call it does at once or not at
 * all, for all who share it. Amounts are finite and not negative.
 */
export interface BudgetStore {
  standing(callerId: string, terms: BudgetTerms): Promise<StandingAmounts>;
  /** The next spending of a caller to leave the window, oldest first; of very much, the beginning will do. */
  leaving(callerId: string, terms: BudgetTerms): Promise<readonly LeavingAmounts[]>;
  /**
   * Opens a reservation, when `isAllowed` says so. The standing it is shown is without this very key.
   * @returns the standing that it was refused for; undefined = it is open
   */
  reserve(call: BudgetCall, wish: ReservationWish, terms: BudgetTerms): Promise<StandingAmounts | undefined>;
  /**
   * Closes the reservation of a call and counts the call, once: its earlier count, if it has one, no longer counts.
   * @param amountsFor gives what is to be counted, from what was reserved
   * @returns what was counted
   */
  commit(
    call: BudgetCall,
    amountsFor: (reserved: BudgetAmounts) => BudgetAmounts,
    terms: BudgetTerms,
  ): Promise<BudgetAmounts>;
  /** Closes the reservation of a call; an earlier count of it stands. */
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
  readonly runId: string;
  /** Over the whole life of the run. */
  readonly spent: BudgetAmounts;
}
