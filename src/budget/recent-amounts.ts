import { add, type BudgetAmounts, nothing } from './amounts.ts';
import type { TimedAmounts } from './ledger.ts';

interface Timed {
  readonly at: number;
  readonly amounts: BudgetAmounts;
}

export interface Bounds {
  /** The most entries that are known by key. */
  readonly most: number;
  /** Older entries are summed in slices of this duration; undefined: they are dropped. */
  readonly sliceMs?: number;
}

/** Amounts in memory. Times must not decrease. */
export class RecentAmounts implements TimedAmounts {
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
