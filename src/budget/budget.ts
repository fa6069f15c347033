import { type Clock, systemClock } from '../values/clock.ts';
import { BudgetExceededError } from '../values/errors.ts';
import { checkKeys, checkMethods, type KnownKeys } from '../values/known-options.ts';
import { amountsOf, type BudgetAmounts, toSpend } from './amounts.ts';
import { checkAmount, checkedSpend, checkedUse, checkText } from './check-use.ts';
import { Estimator, type ExpectedUse } from './estimate.ts';
import { type BudgetLimits, limitsOf, messageOf, type Refusal, refusalOf } from './limits.ts';
import { memoryBudget } from './memory.ts';
import type { Budget, BudgetStanding, CallEstimate, CallUse, EarlierSpend, Reservation, Spend } from './port.ts';
import { type PriceOf, type Prices, priceOfCalls } from './prices.ts';
import type { BudgetCall, BudgetStore, BudgetTerms, StandingAmounts } from './store.ts';

export interface BudgetOptions {
  /**
   * The most tokens (input and output) that a caller may use within the window.
   * @default none
   * @example tokens: 50_000
   */
  readonly tokens?: number | undefined;
  /**
   * The most US dollars; needs `prices`.
   * @default none
   * @example usd: 5
   */
  readonly usd?: number | undefined;
  /**
   * The longest total time of a caller's model calls.
   * @default none
   * @example seconds: 600
   */
  readonly seconds?: number | undefined;
  /**
   * The length of the window.
   * @default 604_800_000
   */
  readonly windowMs?: number | undefined;
  /**
   * The prices of models. Without prices and without a limit in USD, every call counts 0 USD.
   * @default none
   * @example prices: await genaiPrices()
   */
  readonly prices?: Prices | undefined;
  /**
   * What a call is likely to use besides its input. The budget reserves it during the call, so that many calls at once
   * cannot go far over a limit. The default is at most a twentieth of each limit.
   * @default 1,000 output tokens and 10 seconds
   * @example expected: { outputTokens: 4_000 }
   */
  readonly expected?: ExpectedUse | undefined;
  /**
   * The reservation of a call whose process died ends after this time.
   * @default 900_000
   */
  readonly reservationMs?: number | undefined;
  /**
   * Where the budget is stored. `sqliteBudget({ path })` and `postgresBudget({ pool })` are shared and survive the process.
   * @default in this process
   * @example store: sqliteBudget({ path: 'runs.db' })
   */
  readonly store?: BudgetStore | undefined;
  /**
   * For tests.
   * @default the computer's
   * @example clock: testClock()
   */
  readonly clock?: Clock | undefined;
}

/** A budget that also returns what a caller has used. */
export type RollingBudget = Required<Budget>;

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
 * Limits what each caller may use within a rolling window, in tokens, US dollars and seconds of model time. Runs without a
 * `callerId` share one budget.
 *
 * `check` refuses a caller that has reached a limit. `reserve` does the same. If other calls of the caller are running, it
 * also refuses a call when all of them together would exceed a limit. It estimates them by the sizes of their inputs and
 * `expected`. A single call is never refused for an estimate: a caller exceeds a limit by at most one call, or by what
 * calls use beyond `expected`. `commit` counts a call once, even after a crash: a call with a known key replaces the
 * earlier count.
 *
 * A use that is negative or not finite is refused with a TypeError, and the call counts as what was reserved for it. With a
 * limit in USD, `reserve` refuses a model without a price: such a limit could not be enforced.
 *
 * @throws {TypeError} for an unknown option, without any limit, for limits that are negative, infinite or NaN, and for `usd` without `prices`
 * @example createExecutor({ models, ports: { budget: createBudget({ tokens: 1_000_000, seconds: 3_600 }) } })
 */
export function createBudget(options: BudgetOptions): RollingBudget {
  const budget = new StoreBudget(options);
  // Functions, not methods: hosts wrap a budget by spreading it.
  return {
    isLocal: budget.isLocal,
    check: async (callerId) => budget.check(callerId),
    reserve: async (callerId, estimate) => budget.reserve(callerId, estimate),
    commit: async (reservation, used) => budget.commit(reservation, used),
    refund: async (reservation) => budget.refund(reservation),
    restore: async (callerId, run) => budget.restore(callerId, run),
    standing: async (callerId) => budget.standing(callerId),
  };
}

class StoreBudget {
  readonly #limits: BudgetLimits;
  /** The limits as the host gave them. */
  readonly #allowed: BudgetStanding['limits'];
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
    const { tokens, usd, seconds } = options;
    const given = Object.entries({ tokens, usd, seconds }).filter(([, limit]) => limit !== undefined);
    this.#allowed = Object.freeze(Object.fromEntries(given));
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

  get isLocal(): boolean {
    return this.#store.isLocal === true;
  }

  async check(callerId: string): Promise<void> {
    const standing = await this.#store.standing(checkText('callerId', callerId), this.#terms);
    const refusal = refusalOf(this.#limits, standing);
    if (refusal) throw await this.#refusalOf(callerId, refusal);
  }

  async reserve(callerId: string, wish: CallEstimate): Promise<Reservation> {
    const { key, modelTier, model } = wish;
    const call = callOf({ callerId: checkText('callerId', callerId), key: checkText('estimate.key', key) });
    const estimate = this.#estimator.estimate(wish);
    const isAllowed = (standing: StandingAmounts) => refusalOf(this.#limits, standing, estimate) === undefined;
    const standing = await this.#store.reserve(call, { estimate, isAllowed }, this.#terms);
    const refusal = standing && refusalOf(this.#limits, standing, estimate);
    if (refusal) throw await this.#refusalOf(callerId, refusal);
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

  async restore(callerId: string, { runId: id, birth, spend }: EarlierSpend): Promise<void> {
    const spent = amountsOf(checkedSpend(spend));
    const runId = checkText('runId', id) + (birth === undefined ? '' : `:${birth}`);
    await this.#store.restore({ callerId: checkText('callerId', callerId), runId, spent }, this.#terms);
  }

  async standing(callerId: string): Promise<BudgetStanding> {
    const { spent, reserved } = await this.#store.standing(checkText('callerId', callerId), this.#terms);
    const { windowMs } = this.#terms;
    return { spent: toSpend(spent), reserved: toSpend(reserved), limits: this.#allowed, windowMs };
  }

  /** If the price is no longer known, the call counts as what was reserved for it. */
  #amountsOf({ model, modelTier }: Reservation, { usage, seconds }: CallUse, reserved: BudgetAmounts): BudgetAmounts {
    const price = attempt(() => this.#priceOf({ model, modelTier, usage }));
    const usd = 'value' in price ? price.value : undefined;
    const amounts = amountsOf({ tokens: usage.inputTokens + usage.outputTokens, usd: usd ?? 0, seconds });
    return usd === undefined ? { ...amounts, usd: reserved.usd } : amounts;
  }

  async #refusalOf(callerId: string, refusal: Refusal): Promise<BudgetExceededError> {
    const leaving = await this.#store.leaving(callerId, this.#terms);
    const { windowMs, clock } = this.#terms;
    return new BudgetExceededError(messageOf(refusal, { callerId, windowMs, now: clock.now(), leaving }));
  }
}

/** A reservation may come from a record or from a dead process: it holds all that is needed. */
function callOf({ callerId, key }: Pick<Reservation, 'callerId' | 'key'>): BudgetCall {
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
