import { type Clock, systemClock } from '../values/clock.ts';
import { BudgetExceededError } from '../values/errors.ts';
import { checkKeys, checkMethods, type KnownKeys } from '../values/known-options.ts';
import { amountsOf, type BudgetAmounts, nothing, toSpend } from './amounts.ts';
import { type Books, storeOf } from './books.ts';
import { checkAmount, checkedSpend, checkedUse, checkText } from './check-use.ts';
import { Estimator, type ExpectedUse } from './estimate.ts';
import { type Account, expire, Ledger } from './ledger.ts';
import { type Limits, limitsOf, messageOf, type Refusal, refusalOf } from './limits.ts';
import type { Budget, CallEstimate, CallUse, Reservation, Spend } from './port.ts';
import { type PriceOf, type Prices, priceOfCalls } from './prices.ts';
import { RecentAmounts } from './recent-amounts.ts';
import type { BudgetCall, BudgetStore, BudgetTerms, StandingAmounts } from './store.ts';

export interface BudgetOptions {
  /** Most tokens (input and output) that a caller may use within the window. */
  readonly tokens?: number | undefined;
  /** Most US dollars; needs `prices`. */
  readonly usd?: number | undefined;
  /** Longest time that the model calls of a caller may take, added up. */
  readonly seconds?: number | undefined;
  /** How far back spending counts, ms; default 7 days. */
  readonly windowMs?: number | undefined;
  /** What models cost. Without it, and without a limit in USD, every call counts 0 USD. */
  readonly prices?: Prices | undefined;
  /**
   * What a call is likely to take besides its input. It is held while the call is under way, so that many calls at once
   * cannot go far over a limit. Default: 1,000 output tokens and 10 seconds, but of each limit at most a twentieth.
   */
  readonly expected?: ExpectedUse | undefined;
  /** What a call under way holds is free again after this time, ms, when its process died; default 15 minutes. */
  readonly reservationMs?: number | undefined;
  /** Where the books are kept; default: in this process. `sqliteBudget({ path })` is shared, and outlives it. */
  readonly store?: BudgetStore | undefined;
  readonly clock?: Clock | undefined;
}

/** How a caller stands. */
export interface BudgetStanding {
  /** Within the window. */
  readonly spent: Spend;
  /** Held by calls that are under way. */
  readonly reserved: Spend;
}

/** A budget that can be asked how a caller stands. */
export interface RollingBudget extends Required<Budget> {
  standing(callerId: string): Promise<BudgetStanding>;
}

const optionKeys: KnownKeys<BudgetOptions> = {
  tokens: true,
  usd: true,
  seconds: true,
  windowMs: true,
  prices: true,
  expected: true,
  reservationMs: true,
  store: true,
  clock: true,
};

const expectedKeys: KnownKeys<ExpectedUse> = { outputTokens: true, seconds: true };

const WEEK_MS = 7 * 86_400_000;
const RESERVATION_MS = 15 * 60_000;

/**
 * Limits what each caller may spend within a rolling window, in tokens, US dollars and seconds of model time. Runs without
 * a `callerId` share one budget.
 *
 * `check` refuses a caller whose window is used up. So does `reserve`, and it refuses a call that is not the only one under
 * way when all of them together would go over a limit, by the sizes of their inputs and what is `expected` of them. A single
 * call is not refused for an estimate: a caller goes over a limit by one call at most, or by what calls take more than
 * expected. `commit` counts a call once, whatever crashed between: by its key it takes the place of an earlier count.
 *
 * A use that is not finite, or negative, is refused with a TypeError, and the call counts as what it had reserved. With a
 * limit in USD a model without a price is refused by `reserve`: such a limit could not be kept.
 *
 * @throws {TypeError} for an unknown option, without any limit, for limits that are negative, infinite or NaN, and for `usd` without `prices`
 * @example createExecutor({ models, ports: { budget: createBudget({ tokens: 1_000_000, seconds: 3_600 }) } })
 */
export function createBudget(options: BudgetOptions): RollingBudget {
  const budget = new StoreBudget(options);
  // Own functions rather than methods: hosts wrap a budget by spreading it.
  return {
    check: async (callerId) => budget.check(callerId),
    reserve: async (callerId, estimate) => budget.reserve(callerId, estimate),
    commit: async (reservation, used) => budget.commit(reservation, used),
    refund: async (reservation) => budget.refund(reservation),
    restore: async (callerId, run) => budget.restore(callerId, run),
    standing: async (callerId) => budget.standing(callerId),
  };
}

class StoreBudget {
  readonly #limits: Limits;
  readonly #priceOf: PriceOf;
  readonly #estimator: Estimator;
  readonly #store: BudgetStore;
  readonly #terms: BudgetTerms;

  constructor(options: BudgetOptions) {
    checkKeys(options, optionKeys, { of: 'createBudget' });
    if (options.expected !== undefined)
      checkKeys(options.expected, expectedKeys, { of: 'createBudget', at: 'expected' });
    checkMethods('createBudget: store', options.store, {
      methods: ['standing', 'leaving', 'reserve', 'commit', 'refund', 'restore'],
      advice: ": use sqliteBudget({ path: 'budget.db' })",
    });
    const { windowMs = WEEK_MS, reservationMs = RESERVATION_MS, clock = systemClock } = options;
    this.#limits = limitsOf(options);
    if (options.usd !== undefined && options.prices === undefined) {
      throw new TypeError('createBudget: a limit in usd needs prices; give a table, or a function');
    }
    checkAmount('createBudget: windowMs', windowMs);
    checkAmount('createBudget: reservationMs', reservationMs);
    this.#terms = { windowMs, reservationMs, clock };
    this.#priceOf = priceOfCalls(options.prices);
    this.#estimator = new Estimator(this.#limits, this.#priceOf, options.expected);
    this.#store = options.store ?? memoryBudget();
  }

  async check(callerId: string): Promise<void> {
    const standing = await this.#store.standing(checkText('callerId', callerId), this.#terms);
    const refusal = refusalOf(this.#limits, standing);
    if (refusal) throw await this.#refused(callerId, refusal);
  }

  async reserve(callerId: string, wish: CallEstimate): Promise<Reservation> {
    const { key, runId, modelTier, model } = wish;
    const call = { callerId: checkText('callerId', callerId), key: checkText('estimate.key', key), runId };
    const estimate = this.#estimator.estimate(wish);
    const isAllowed = (standing: StandingAmounts) => refusalOf(this.#limits, standing, estimate) === undefined;
    const standing = await this.#store.reserve(call, { estimate, isAllowed }, this.#terms);
    const refusal = standing && refusalOf(this.#limits, standing, estimate);
    if (refusal) throw await this.#refused(callerId, refusal);
    return { key, callerId, modelTier, model };
  }

  async commit(reservation: Reservation, used: CallUse): Promise<Spend> {
    const call = callOf(reservation);
    const use = attempt(() => checkedUse(used));
    const amountsFor = (reserved: BudgetAmounts) =>
      'value' in use ? this.#amountsOf(reservation, use.value, reserved) : reserved;
    const counted = await this.#store.commit(call, amountsFor, this.#terms);
    if ('error' in use) throw use.error;
    return toSpend(counted);
  }

  async refund(reservation: Reservation): Promise<void> {
    await this.#store.refund(callOf(reservation), this.#terms);
  }

  async restore(callerId: string, run: { readonly runId: string; readonly spend: Spend }): Promise<void> {
    const spent = amountsOf(checkedSpend(run.spend));
    const runId = checkText('runId', run.runId);
    await this.#store.restore({ callerId: checkText('callerId', callerId), runId, spent }, this.#terms);
  }

  async standing(callerId: string): Promise<BudgetStanding> {
    const { spent, reserved } = await this.#store.standing(checkText('callerId', callerId), this.#terms);
    return { spent: toSpend(spent), reserved: toSpend(reserved) };
  }

  /** A price that is not known any more counts as what was reserved for it. */
  #amountsOf({ model, modelTier }: Reservation, { usage, seconds }: CallUse, reserved: BudgetAmounts): BudgetAmounts {
    const price = attempt(() => this.#priceOf({ model, modelTier, usage }));
    const usd = 'value' in price ? price.value : undefined;
    const amounts = amountsOf({ tokens: usage.inputTokens + usage.outputTokens, usd: usd ?? 0, seconds });
    return usd === undefined ? { ...amounts, usd: reserved.usd } : amounts;
  }

  async #refused(callerId: string, refusal: Refusal): Promise<BudgetExceededError> {
    const leaving = await this.#store.leaving(callerId, this.#terms);
    const { windowMs, clock } = this.#terms;
    return new BudgetExceededError(messageOf(refusal, { callerId, windowMs, now: clock.now(), leaving }));
  }
}

/** A reservation may come from a record, or from a process that is gone: what is needed of it stands in it. */
function callOf({ callerId, key }: Reservation): BudgetCall {
  checkText('reservation.key', key);
  const runId = key.includes(':') ? key.slice(0, key.lastIndexOf(':')) : key;
  return { callerId: checkText('reservation.callerId', callerId), key, runId };
}

function attempt<T>(work: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}

/** With each call, so many callers that were not heard of for the longest time are looked at. */
const LOOKED_AT = 2;

/** So many calls of a caller are known one by one, and so many of its runs. */
const MAX_KNOWN = 4_096;

/** Calls before those are added up, in so many slices of the window. */
const SLICES = 1_024;

/** The books of a budget in this process. */
export function memoryBudget(): BudgetStore {
  return storeOf(new MemoryBooks());
}

/** Callers that have nothing left in the window are forgotten. Those that were heard of latest stand at the end. */
export class MemoryBooks implements Books {
  readonly #accounts = new Map<string, Account>();

  /** How many callers are known. */
  get callers(): number {
    return this.#accounts.size;
  }

  async with<T>(callerId: string, terms: BudgetTerms, work: (ledger: Ledger) => T): Promise<T> {
    const moment = { ...terms, now: terms.clock.monotonic(), runsMs: terms.windowMs };
    let looked = 0;
    for (const [oldest, account] of this.#accounts) {
      if (looked++ === LOOKED_AT) break;
      expire(account, moment);
      this.#keep(oldest, account);
    }
    const account = this.#accounts.get(callerId) ?? newAccount(terms);
    const result = work(new Ledger(account, moment));
    this.#keep(callerId, account);
    return result;
  }

  #keep(callerId: string, account: Account): void {
    this.#accounts.delete(callerId);
    const lists = [account.calls, account.reservations, account.runs];
    const isEmpty = lists.every((list) => list.oldest()[Symbol.iterator]().next().done);
    if (!isEmpty) this.#accounts.set(callerId, account);
  }
}

function newAccount({ windowMs }: BudgetTerms): Account {
  return {
    calls: new RecentAmounts({ most: MAX_KNOWN, sliceMs: windowMs / SLICES }),
    reservations: new RecentAmounts(),
    runs: new RecentAmounts({ most: MAX_KNOWN }),
    sums: { spent: nothing, reserved: nothing },
  };
}
