import { nothing } from './amounts.ts';
import { type Books, storeOf } from './books.ts';
import { type Account, expire, Ledger } from './ledger.ts';
import { RecentAmounts } from './recent-amounts.ts';
import type { BudgetStore, BudgetTerms } from './store.ts';

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
