import type { Clock } from '../run/clock.ts';
import type { Amounts } from './amounts.ts';

/** What counts against the limits of a caller. */
export interface Standing {
  /** By calls within the window that are over. */
  readonly spent: Amounts;
  /** By calls that are under way. */
  readonly reserved: Amounts;
}

/** What all that a budget asks of its store has in common. */
export interface Terms {
  readonly windowMs: number;
  /** A reservation that is older is of a process that died. */
  readonly reservationMs: number;
  readonly clock: Clock;
}

/** A call of a run. */
export interface Call {
  readonly callerId: string;
  readonly key: string;
  readonly runId: string;
}

/** Spending that leaves the window. */
export interface Leaving {
  /** From now, ms. */
  readonly inMs: number;
  readonly amounts: Amounts;
}

/**
 * Where a budget keeps its books: in memory, or with `sqliteBudget`. What it does for one call it does at once or not at
 * all, for all who share it. Amounts are finite and not negative.
 */
export interface BudgetStore {
  standing(callerId: string, terms: Terms): Promise<Standing>;
  /** The next spending of a caller to leave the window, oldest first; of very much, the beginning will do. */
  leaving(callerId: string, terms: Terms): Promise<readonly Leaving[]>;
  /**
   * Opens a reservation, when `isAllowed` says so. The standing it is shown is without this very key.
   * @returns the standing that it was refused for; undefined = it is open
   */
  reserve(call: Call, wish: Wish, terms: Terms): Promise<Standing | undefined>;
  /**
   * Closes the reservation of a call and counts the call, once: its earlier count, if it has one, no longer counts.
   * @param amountsFor gives what is to be counted, from what was reserved
   * @returns what was counted
   */
  commit(call: Call, amountsFor: (reserved: Amounts) => Amounts, terms: Terms): Promise<Amounts>;
  /** Closes the reservation of a call; an earlier count of it stands. */
  refund(call: Call, terms: Terms): Promise<void>;
  /** Counts what a run has spent by its record, as far as it is not counted yet. */
  restore(run: RunSpend, terms: Terms): Promise<void>;
}

export interface Wish {
  readonly estimate: Amounts;
  readonly isAllowed: (standing: Standing) => boolean;
}

export interface RunSpend {
  readonly callerId: string;
  readonly runId: string;
  /** Over the whole life of the run. */
  readonly spent: Amounts;
}
