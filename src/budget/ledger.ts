import { add, type BudgetAmounts, beyond, isNothing, nothing, subtract } from './amounts.ts';
import type { LeavingAmounts, StandingAmounts } from './store.ts';

/** Amounts by key, in the order of time: what leaves the window is always at the front. */
export interface TimedAmounts {
  get(key: string): BudgetAmounts | undefined;
  /** Takes the place of what is there under this key. Nothing that is there is later than `at`. */
  put(key: string, at: number, amounts: BudgetAmounts): void;
  remove(key: string): void;
  /** Removes what is not later than `at`. @returns the sum of it */
  removeUntil(at: number): BudgetAmounts;
  /** The oldest of them, in order. */
  oldest(): Iterable<{ readonly at: number; readonly amounts: BudgetAmounts }>;
}

/** What is kept of one caller. */
export interface Account {
  /** Calls that are over. */
  readonly calls: TimedAmounts;
  /** Calls that are under way, with what they hold. */
  readonly reservations: TimedAmounts;
  /** What each run has spent in its whole life, as far as it is known here. */
  readonly runs: TimedAmounts;
  /** The sums of `calls` and `reservations`, so that nobody has to add them up. */
  sums: StandingAmounts;
}

export interface Moment {
  /** Of the clock that the account's times are of, ms. */
  readonly now: number;
  readonly windowMs: number;
  readonly reservationMs: number;
  /** How long it is known what a run has spent, ms. */
  readonly runsMs: number;
}

/** Drops what has left the window, and what calls hold that began too long ago. */
export function expire(account: Account, { now, windowMs, reservationMs, runsMs }: Moment): void {
  const spent = account.calls.removeUntil(now - windowMs);
  const reserved = account.reservations.removeUntil(now - reservationMs);
  account.runs.removeUntil(now - runsMs);
  if (isNothing(spent) && isNothing(reserved)) return;
  const { sums } = account;
  account.sums = { spent: subtract(sums.spent, spent), reserved: subtract(sums.reserved, reserved) };
}

/** The account of one caller at one moment. All of its work costs the same, however much the caller has spent. */
export class Ledger {
  readonly #account: Account;
  readonly #moment: Moment;

  constructor(account: Account, moment: Moment) {
    this.#account = account;
    this.#moment = moment;
    expire(account, moment);
  }

  /** @param key a call that is not to count */
  standing(key?: string): StandingAmounts {
    const { calls, reservations, sums } = this.#account;
    if (key === undefined) return sums;
    return {
      spent: subtract(sums.spent, calls.get(key) ?? nothing),
      reserved: subtract(sums.reserved, reservations.get(key) ?? nothing),
    };
  }

  /** Lets a call hold something until it is closed. */
  open(key: string, amounts: BudgetAmounts): void {
    this.close(key);
    this.#account.reservations.put(key, this.#moment.now, amounts);
    this.#change(nothing, amounts);
  }

  /** @returns what the call held */
  close(key: string): BudgetAmounts {
    const { reservations } = this.#account;
    const amounts = reservations.get(key);
    if (!amounts) return nothing;
    reservations.remove(key);
    this.#change(nothing, negative(amounts));
    return amounts;
  }

  /** Counts a call, in the place of what was counted under its key. */
  count({ key, runId }: { readonly key: string; readonly runId: string }, amounts: BudgetAmounts): void {
    const change = subtract(amounts, this.#account.calls.get(key) ?? nothing);
    this.#account.calls.put(key, this.#moment.now, amounts);
    this.#change(change, nothing);
    this.#know(runId, change);
  }

  /** Counts what a run has spent beyond what is known of it. @param key one that no call has */
  restore(runId: string, spent: BudgetAmounts, key: string): void {
    const missing = beyond(spent, this.#account.runs.get(runId) ?? nothing);
    if (!isNothing(missing)) this.count({ key, runId }, missing);
  }

  /** What leaves the window, oldest first. */
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
