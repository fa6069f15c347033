import type { BucketCost, BucketMove, CallCosts, LimitStore, TakenTurn, TakenTurns } from './port.ts';

/** A bucket after a take. Times in milliseconds. */
export interface Bucket {
  readonly id: string;
  readonly next: number;
  /** When it is equal to none. */
  readonly idleAt: number;
}

/** What a take makes of its buckets. */
export interface ChargedBuckets extends TakenTurns {
  readonly buckets: readonly Bucket[];
}

/** Decides a take. @param next of each bucket that there is @param now wall clock, ms */
export type DecideTurns = (next: ReadonlyMap<string, number>, now: number) => ChargedBuckets;

/** The buckets of a store: a number for each id, and one more by which idle buckets are found. */
export interface LimitDriver {
  /**
   * Reads the buckets with these ids, which are sorted, and stores what `decide` makes of them, in one commit: no other take comes between.
   * `decide` may be called again. A few buckets with `idleAt` of more than `IDLE_MS` ago are removed.
   */
  charge(ids: readonly string[], decide: DecideTurns): Promise<TakenTurns>;
}

/** A bucket stays for so long after it is equal to none: a clock may be set back a little. */
export const IDLE_MS = 60_000;
/** How many idle buckets a take removes: more than it makes, as a rule. */
export const REMOVED_AT_ONCE = 8;
/** A call whose turn is later than this is charged in no further group, ms: no bucket with a lag of as much is set ahead of now for another one. */
const AHEAD_MS = 1_000;

/** Makes the limits of a store. */
export function limitGroup(limits: LimitDriver): LimitStore {
  return {
    takeTurns: async (calls, moves = []) => {
      const costs = calls.flat(2);
      for (const { costMs, lagMs } of costs) checkTimes({ costMs, lagMs, byMs: 0 });
      for (const { byMs, lagMs } of moves) checkTimes({ costMs: 0, lagMs, byMs });
      // Transactions that take their locks in one order do not wait for each other in a circle.
      const ids = [...new Set([...moves, ...costs].map(({ bucket }) => bucket))].sort();
      const { now, turns } = await limits.charge(ids, (next, at) => new Take(next, at).decide(calls, moves));
      return { now, turns };
    },
  };
}

function checkTimes({
  costMs,
  lagMs,
  byMs,
}: {
  readonly costMs: number;
  readonly lagMs: number;
  readonly byMs: number;
}) {
  if ([costMs, lagMs, byMs].every(Number.isFinite) && costMs >= 0 && lagMs >= 0) return;
  throw new TypeError(`takeTurns: a cost of ${costMs} ms, a lag of ${lagMs} ms and a move of ${byMs} ms cannot be`);
}

/** A take at one moment. */
class Take {
  readonly #stored: ReadonlyMap<string, number>;
  readonly #now: number;
  readonly #charged = new Map<string, Bucket>();

  constructor(stored: ReadonlyMap<string, number>, now: number) {
    this.#stored = stored;
    this.#now = now;
  }

  decide(calls: readonly CallCosts[], moves: readonly BucketMove[]): ChargedBuckets {
    for (const move of moves) this.#set(move, Math.max(this.#now - move.lagMs, this.#next(move) + move.byMs));
    const turns = calls.map((groups) => this.#turn(groups));
    return { now: this.#now, turns, buckets: [...this.#charged.values()] };
  }

  #turn(groups: CallCosts): TakenTurn {
    let [at, taken] = [this.#now, 0];
    for (const group of groups) {
      if (at > this.#now + AHEAD_MS) break;
      at = Math.max(at, ...group.map((cost) => this.#next(cost)));
      for (const cost of group) this.#set(cost, Math.max(this.#next(cost), at - cost.lagMs) + cost.costMs);
      taken += 1;
    }
    return { at, groups: taken };
  }

  /** An idle bucket is equal to none. */
  #next({ bucket, lagMs }: Pick<BucketCost, 'bucket' | 'lagMs'>): number {
    const next = this.#charged.get(bucket)?.next ?? this.#stored.get(bucket) ?? Number.NEGATIVE_INFINITY;
    return Math.max(this.#now - lagMs, next);
  }

  #set({ bucket, lagMs }: Pick<BucketCost, 'bucket' | 'lagMs'>, next: number): void {
    this.#charged.set(bucket, { id: bucket, next, idleAt: next + lagMs });
  }
}
