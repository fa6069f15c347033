import type { CheckpointStore } from '../port.ts';

/** What a call costs in a bucket. Times in milliseconds. */
export interface BucketCost {
  readonly bucket: string;
  /** How much later the next call may begin: 60,000 divided by the limit, times what this call uses. */
  readonly costMs: number;
  /** How far an idle bucket may lag behind now: so much may begin at once. All calls of one take give a bucket the same. */
  readonly lagMs: number;
}

/** What a call used differs from what was estimated before. */
export interface BucketMove {
  readonly bucket: string;
  /** Positive: it used more. */
  readonly byMs: number;
  readonly lagMs: number;
}

/** The turns of some calls, by the clock of the store, ms. */
export interface TakenTurns {
  /** When they were taken. */
  readonly now: number;
  /** When each call may begin, in the order of the calls: `now`, or later. */
  readonly turns: readonly number[];
}

/** A store that gives turns to the calls of all its processes. */
export interface LimitStore extends CheckpointStore {
  /**
   * Gives each call a turn: the latest one of its buckets. A bucket is one number, `next`. Each call takes
   * `from = max(next, now - lagMs)`, begins at `max(now, from)`, and leaves `next = from + costMs`. One commit has all buckets of all calls,
   * and, before them, the moves of earlier calls. A bucket that lies idle is equal to none, and is removed at some time.
   *
   * A take whose answer is lost may have been made: its turns are lost then.
   * @throws {TypeError} for a time that is no finite number, and for a cost or a lag below 0
   */
  takeTurns(calls: readonly (readonly BucketCost[])[], moves?: readonly BucketMove[]): Promise<TakenTurns>;
}
