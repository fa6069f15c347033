import { add, type BudgetAmounts, beyond, isNothing, nothing, subtract } from './amounts.ts';
import type { LeavingAmounts, StandingAmounts } from './store.ts';

/** Amounts by key, ordered by time: the amounts that leave the window first are at the front. */
export interface TimedAmounts {
  get(key: string): BudgetAmounts | undefined;
  /** Sets the amounts of a key. No existing entry is later than `at`. */
  put(key: string, at: number, amounts: BudgetAmounts): void;
  remove(key: string): void;
  /** Removes the entries up to and including `at`. @returns their sum */
  removeUntil(at: number): BudgetAmounts;
  /** The oldest entries, in order. */
  oldest(): Iterable<{ readonly at: number; readonly amounts: BudgetAmounts }>;
}

/** The data of one caller. */
export interface Account {
  /** Calls that have ended. */
  readonly calls: TimedAmounts;
  /** Running calls, with their reservations. */
  readonly reservations: TimedAmounts;
  /** What each run has spent in its whole life, as far as this store knows. */
  readonly runs: TimedAmounts;
  /** The sums of `calls` and `reservations`, kept so that they need not be computed. */
  sums: StandingAmounts;
}

export interface Moment {
  /** By the clock of the account's times, ms. */
  readonly now: number;
  readonly windowMs: number;
  readonly reservationMs: number;
  /** How long the spending of a run is kept, ms. */
  readonly runsMs: number;
}

/** Removes expired amounts from a caller's account: those that left the window, and reservations that are too old. */
export function expire(account: Account, { now, windowMs, reservationMs, runsMs }: Moment): void {
  const spent = account.calls.removeUntil(now - windowMs);
  const reserved = account.reservations.removeUntil(now - reservationMs);
  account.runs.removeUntil(now - runsMs);
  if (isNothing(spent) && isNothing(reserved)) return;
  const { sums } = account;
  account.sums = { spent: subtract(sums.spent, spent), reserved: subtract(sums.reserved, reserved) };
}

/**
 * The account of one caller at one moment: opens, closes and counts reservations, and sums up what is spent. Each operation
 * costs the same, no matter how much the caller has used.
 */
export class BudgetLedger {
  readonly #account: Account;
  readonly #moment: Moment;

  constructor(account: Account, moment: Moment) {
    this.#account = account;
    this.#moment = moment;
    expire(account, moment);
  }

  /** What a caller has spent and reserved within the window of the budget. @param key a call that is not counted */
  standing(key?: string): StandingAmounts {
    const { calls, reservations, sums } = this.#account;
    if (key === undefined) return sums;
    return {
      spent: subtract(sums.spent, calls.get(key) ?? nothing),
      reserved: subtract(sums.reserved, reservations.get(key) ?? nothing),
    };
  }

  /** Opens a reservation for a call. */
  open(key: string, amounts: BudgetAmounts): void {
    this.close(key);
    this.#account.reservations.put(key, this.#moment.now, amounts);
    this.#change(nothing, amounts);
  }

  /** Closes the reservation of a call. @returns what the call had reserved */
  close(key: string): BudgetAmounts {
    const { reservations } = this.#account;
    const amounts = reservations.get(key);
    if (!amounts) return nothing;
    reservations.remove(key);
    this.#change(nothing, negative(amounts));
    return amounts;
  }

  /** Counts a call; replaces an earlier count of the same key. */
  count({ key, runId }: { readonly key: string; readonly runId: string }, amounts: BudgetAmounts): void {
    const change = subtract(amounts, this.#account.calls.get(key) ?? nothing);
    this.#account.calls.put(key, this.#moment.now, amounts);
    this.#change(change, nothing);
    this.#know(runId, change);
  }

  /** Counts what a run has spent beyond what is known of it. @param key a key that no call has */
  restore(runId: string, spent: BudgetAmounts, key: string): void {
    const missing = beyond(spent, this.#account.runs.get(runId) ?? nothing);
    if (!isNothing(missing)) this.count({ key, runId }, missing);
  }

  /** The amounts that leave the window next, oldest first. */
  leaving(): LeavingAmounts[] {
    const { now, windowMs } = this.#moment;
    return Array.from(this.#account.calls.oldest(), ({ at, amounts }) => ({ inMs: at + windowMs - now, amounts }));
  }

  #know(runId: string, change: BudgetAmounts): void {
    const { runs } = this.#account;
    runs.put(runId, this.#moment.now, add(runs.get(runId) ?? nothing, change));
  }

  #change(spent: BudgetAmounts, reserved: BudgetAmounts): void {
    const { sums } = this.#account;
    this.#account.sums = { spent: add(sums.spent, spent), reserved: add(sums.reserved, reserved) };
  }
}

function negative(amounts: BudgetAmounts): BudgetAmounts {
  return subtract(nothing, amounts);
}
