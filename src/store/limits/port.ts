/** What a call costs in a bucket. Times in milliseconds. */
export interface BucketCost {
  readonly bucket: string;
  /** How much later the next call may begin: 60,000 divided by the limit, times what this call uses. */
  readonly costMs: number;
  /** How far a bucket may lag behind the turn of a call: so much may begin at once. All calls of one take give a bucket the same. */
  readonly lagMs: number;
}

/**
 * What a call costs in groups of buckets, in the order in which they are asked. A group is for the same calls: one limit on their number
 * and one on their tokens. The last group is the one that is never passed.
 */
export type CallCosts = readonly (readonly BucketCost[])[];

/** What a call used differs from what was estimated before. */
export interface BucketMove {
  readonly bucket: string;
  /** Positive: it used more. */
  readonly byMs: number;
  readonly lagMs: number;
}

/** The turn of a call. */
export interface TakenTurn {
  /** When it may begin, by the clock of the store, ms: `now`, or later. */
  readonly at: number;
  /** How many of its groups gave it a turn: the others are to be asked when it has come. */
  readonly groups: number;
}

/** The turns of some calls, by the clock of the store, ms. */
export interface TakenTurns {
  /** When they were taken. */
  readonly now: number;
  /** In the order of the calls. */
  readonly turns: readonly TakenTurn[];
}

/** The turns of limited calls, for all processes that share a store. */
export interface LimitStore {
  /**
   * Gives each call a turn. A bucket is one number, `next`. A call has its turn `at` the latest of `now` and the `next` of its groups so far,
   * and takes `from = max(next, at - lagMs)` in each bucket of the group, which leaves `next = from + costMs`. If that is more than a second
   * from now, the groups that follow are not charged: a call that one limit holds back has no place in the others. One commit has all
   * buckets of all calls, and, before them, the moves of earlier calls. A bucket that lies idle is equal to none, and is removed at some time.
   *
   * A take whose answer is lost may have been made: its turns are lost then.
   * @throws {TypeError} for a time that is no finite number, and for a cost or a lag below 0
   */
  takeTurns(calls: readonly CallCosts[], moves?: readonly BucketMove[]): Promise<TakenTurns>;
}
