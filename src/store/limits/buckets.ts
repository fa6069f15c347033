import type { BucketCost, BucketMove, LimitStore, TakenTurns } from './port.ts';

/** What a take changes in one bucket. Times in milliseconds. */
export interface BucketCharge {
  readonly id: string;
  /** What all calls of the take cost together. */
  readonly costMs: number;
  readonly lagMs: number;
  readonly moveMs: number;
}

/** What a driver made of a take. */
export interface ChargedBuckets {
  /** Wall clock, ms. */
  readonly now: number;
  /** `next` of each charge, in their order, after the take. */
  readonly next: readonly number[];
}

/** The buckets of a store: a number for each id, and one more by which idle buckets are found. */
export interface LimitDriver {
  /**
   * Sets each bucket to `nextAfter(charge, next, now)`, all of them in one commit. A few buckets with `idleAt` of more than
   * `IDLE_MS` ago are removed.
   */
  charge(charges: readonly BucketCharge[]): Promise<ChargedBuckets>;
}

/** A bucket stays for so long after it is equal to none: a clock may be set back a little. */
export const IDLE_MS = 60_000;
/** How many idle buckets a take removes: more than it makes, as a rule. */
export const REMOVED_AT_ONCE = 8;

/** Returns `next` of a bucket after a charge. @param next as it was; undefined: there is none */
export function nextAfter({ costMs, lagMs, moveMs }: BucketCharge, next: number | undefined, now: number): number {
  const floor = now - lagMs;
  return Math.max(floor, Math.max(floor, next ?? floor) + moveMs) + costMs;
}

/** Returns when a bucket is equal to none. */
export function idleAt({ lagMs }: Pick<BucketCharge, 'lagMs'>, next: number): number {
  return next + lagMs;
}

/** Returns the method that a store has because its driver has `limits`. */
export function limitMethods({
  limits,
}: {
  readonly limits?: LimitDriver | undefined;
}): Partial<Pick<LimitStore, 'takeTurns'>> {
  if (!limits) return {};
  return {
    takeTurns: async (calls, moves = []) => {
      const charges = chargesOf(calls, moves);
      return turnsOf(calls, charges, await limits.charge(charges));
    },
  };
}

/** One charge for each bucket, by id: transactions that take their locks in this order do not wait for each other in a circle. */
function chargesOf(calls: readonly (readonly BucketCost[])[], moves: readonly BucketMove[]): BucketCharge[] {
  const byId = new Map<string, BucketCharge>();
  const add = ({ bucket: id, lagMs }: Pick<BucketCost, 'bucket' | 'lagMs'>, costMs: number, moveMs: number) => {
    if (![costMs, lagMs, moveMs].every(Number.isFinite) || costMs < 0 || lagMs < 0)
      throw new TypeError(
        `takeTurns: a cost of ${costMs} ms, a lag of ${lagMs} ms and a move of ${moveMs} ms cannot be`,
      );
    const before = byId.get(id) ?? { id, costMs: 0, lagMs, moveMs: 0 };
    byId.set(id, { id, costMs: before.costMs + costMs, lagMs: before.lagMs, moveMs: before.moveMs + moveMs });
  };
  for (const move of moves) add(move, 0, move.byMs);
  for (const costs of calls) for (const cost of costs) add(cost, cost.costMs, 0);
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The calls of a take stand one after the other in each bucket. */
function turnsOf(
  calls: readonly (readonly BucketCost[])[],
  charges: readonly BucketCharge[],
  { now, next }: ChargedBuckets,
): TakenTurns {
  const from = new Map(charges.map(({ id, costMs }, i) => [id, (next[i] ?? now) - costMs]));
  const turns = calls.map((costs) => {
    let turn = now;
    for (const { bucket, costMs } of costs) {
      const begins = from.get(bucket) ?? now;
      turn = Math.max(turn, begins);
      from.set(bucket, begins + costMs);
    }
    return turn;
  });
  return { now, turns };
}
