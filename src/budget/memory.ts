import { add, type BudgetAmounts, nothing } from './amounts.ts';
import { type Account, BudgetLedger, expire, type TimedAmounts } from './ledger.ts';
import type { BudgetStore, BudgetTerms } from './store.ts';
import { type AskedAmount, type Ledgers, storeOf } from './store-on-ledgers.ts';

/** How many of the callers with the oldest use are checked with each call. */
const LOOKED_AT = 2;

/** The most calls and the most runs of a caller that are stored one by one. */
const MAX_KNOWN = 4_096;

/** Older calls are summed in this many slices of the window. */
const SLICES = 1_024;

/** Stores a budget in the memory of this process: the default store of a budget. */
export function memoryBudget(): BudgetStore {
  return { ...storeOf(new MemoryLedgers()), isLocal: true };
}

/**
 * The accounts of all callers in memory; those with no use left in the window are removed. The callers with the newest use
 * come last.
 */
export class MemoryLedgers implements Ledgers {
  readonly #accounts = new Map<string, Account>();

  /** The number of known callers. */
  get callers(): number {
    return this.#accounts.size;
  }

  async with<T>({ callerId }: AskedAmount, terms: BudgetTerms, work: (ledger: BudgetLedger) => T): Promise<T> {
    const moment = { ...terms, now: terms.clock.monotonic(), runsMs: terms.windowMs };
    let looked = 0;
    for (const [oldest, account] of this.#accounts) {
      if (looked++ === LOOKED_AT) break;
      expire(account, moment);
      this.#keep(oldest, account);
    }
    const account = this.#accounts.get(callerId) ?? newAccount(terms);
    const result = work(new BudgetLedger(account, moment));
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

interface Timed {
  readonly at: number;
  readonly amounts: BudgetAmounts;
}

interface Bounds {
  /** The most entries that are known by key. */
  readonly most: number;
  /** Older entries are summed in slices of this duration; undefined: they are dropped. */
  readonly sliceMs?: number;
}

/** A list of timed amounts of one caller in memory; the oldest are summed in slices or dropped. Times must not decrease. */
class RecentAmounts implements TimedAmounts {
  readonly #bounds: Bounds | undefined;
  /** A Map keeps the order in which its keys were set. */
  readonly #byKey = new Map<string, Timed>();
  /** A slice leaves the window with its last amount. */
  #slices: Timed[] = [];

  constructor(bounds?: Bounds) {
    this.#bounds = bounds;
  }

  get(key: string): BudgetAmounts | undefined {
    return this.#byKey.get(key)?.amounts;
  }

  put(key: string, at: number, amounts: BudgetAmounts): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, { at, amounts });
    if (this.#bounds && this.#byKey.size > this.#bounds.most) this.#foldOldest(this.#bounds);
  }

  remove(key: string): void {
    this.#byKey.delete(key);
  }

  removeUntil(at: number): BudgetAmounts {
    let sum = nothing;
    const gone = this.#slices.findIndex((slice) => slice.at > at);
    for (const { amounts } of this.#slices.splice(0, gone === -1 ? this.#slices.length : gone)) sum = add(sum, amounts);
    for (const [key, timed] of this.#byKey) {
      if (timed.at > at) break;
      this.#byKey.delete(key);
      sum = add(sum, timed.amounts);
    }
    return sum;
  }

  *oldest(): Iterable<Timed> {
    yield* this.#slices;
    yield* this.#byKey.values();
  }

  #foldOldest({ sliceMs }: Bounds): void {
    const [oldest] = this.#byKey;
    if (oldest === undefined) return;
    const [key, { at, amounts }] = oldest;
    this.#byKey.delete(key);
    if (sliceMs === undefined) return;
    const last = this.#slices.at(-1);
    const isSameSlice = last !== undefined && Math.floor(last.at / sliceMs) === Math.floor(at / sliceMs);
    if (isSameSlice) this.#slices[this.#slices.length - 1] = { at, amounts: add(last.amounts, amounts) };
    else this.#slices.push({ at, amounts });
  }
}
