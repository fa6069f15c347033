import type { BucketMove, CallCosts, LimitStore } from '../store/limits/port.ts';
import type { Clock } from '../values/clock.ts';
import { withDeadline } from '../values/deadline.ts';

/** From the beginning of one write of a process to the next one, ms. */
const WRITE_MS = 20;
/** How long the difference between an estimate and the use waits for a write, ms. */
const MOVE_MS = 1_000;
const MAX_CALLS = 200;
/** How long one write may take, ms. */
const WRITE_LIMIT_MS = 10_000;
/** Buckets with a difference that the store did not take. */
const MAX_MOVES = 10_000;

interface Asking {
  readonly costs: CallCosts;
  readonly signal: AbortSignal;
  readonly turn: PromiseWithResolvers<AskedTurn>;
}

/** The turn of a call: after a time, ms, and from how many of its groups. */
interface AskedTurn {
  readonly waitMs: number;
  readonly groups: number;
}

/**
 * Takes turns for the calls of one process. The first call is written at once; those that come within 20 ms, or while a write is under
 * way, are one write.
 */
export class TurnTaker {
  readonly #store: LimitStore;
  readonly #clock: Clock;
  #asking: Asking[] = [];
  #moves = new Map<string, BucketMove>();
  #timer: unknown;
  #moveTimer: unknown;
  #isWriting = false;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(store: LimitStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Takes a turn for a call. @throws the store's error, or the reason of the signal */
  take(costs: CallCosts, signal: AbortSignal): Promise<AskedTurn> {
    const turn = Promise.withResolvers<AskedTurn>();
    this.#asking.push({ costs, signal, turn });
    this.#look();
    return turn.promise;
  }

  /** Moves a bucket with the next write, or after a second. */
  move(move: BucketMove): void {
    this.#add(move);
    this.#armMoves();
  }

  #armMoves(): void {
    if (this.#moveTimer !== undefined || this.#moves.size === 0) return;
    this.#moveTimer = this.#clock.setTimeout(() => {
      this.#moveTimer = undefined;
      if (this.#moves.size > 0) void this.#write();
    }, MOVE_MS);
    (this.#moveTimer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }

  #add({ bucket, byMs, lagMs }: BucketMove): void {
    const before = this.#moves.get(bucket)?.byMs ?? 0;
    if (this.#moves.size < MAX_MOVES || this.#moves.has(bucket))
      this.#moves.set(bucket, { bucket, byMs: before + byMs, lagMs });
  }

  #look(): void {
    if (this.#isWriting || this.#timer !== undefined || this.#asking.length === 0) return;
    const left = this.#wroteAt + WRITE_MS - this.#clock.monotonic();
    if (left <= 0) return void this.#write();
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#write();
    }, left);
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Calls of the same moment come with it.
    await Promise.resolve();
    this.#wroteAt = this.#clock.monotonic();
    const calls = this.#next();
    const moves = [...this.#moves.values()];
    this.#moves = new Map();
    try {
      const taken = this.#store.takeTurns(
        calls.map(({ costs }) => costs),
        moves,
      );
      // A store that never answers must not hold back all later calls.
      const { now, turns } = await withDeadline(taken, {
        ms: WRITE_LIMIT_MS,
        clock: this.#clock,
        what: 'limits.takeTurns',
      });
      for (const [i, { turn }] of calls.entries()) {
        const { at = now, groups = 0 } = turns[i] ?? {};
        turn.resolve({ waitMs: Math.max(0, at - now), groups });
      }
    } catch (error) {
      for (const move of moves) this.#add(move);
      for (const { turn } of calls) turn.reject(error);
    }
    this.#isWriting = false;
    this.#armMoves();
    this.#look();
  }

  /** A call that was stopped meanwhile takes no turn. */
  #next(): Asking[] {
    const next: Asking[] = [];
    while (next.length < MAX_CALLS) {
      const asking = this.#asking.shift();
      if (!asking) break;
      if (asking.signal.aborted) asking.turn.reject(asking.signal.reason);
      else next.push(asking);
    }
    return next;
  }
}
