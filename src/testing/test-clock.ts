import type { Clock } from '../values/clock.ts';

/** A clock that moves only when the test moves it. */
export interface TestClock extends Clock {
  /**
   * Moves wall clock, monotonic clock and timers together. Timers fire in the order of their times, each at its own time.
   * Promise callbacks run before, between and after them. Resolves when all of that is done.
   */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward or back, as NTP may do; nothing else moves. */
  wallJump(ms: number): void;
  /** The number of timers that have not fired. */
  readonly pending: number;
}

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** Saved when the module loads: fake timers of a test framework must not stop this clock. */
const { setImmediate } = globalThis;
/** Streams and promise chains need several turns until they settle. */
const TURNS = 3;

/**
 * A clock for tests: pass it as `clock`, and no test has to sleep.
 * @param start what the wall clock shows, ms since the epoch; the monotonic clock begins at 0
 * @example
 * const clock = testClock();
 * const call = callSomething({ clock });
 * await clock.advance(60_000);
 */
export function testClock(start = 0): TestClock {
  // The wall clock is computed: a sum of short times loses those that are below its precision, and then never reaches a time.
  let began = start;
  let monotonic = 0;
  const timers = new Set<Timer>();
  return {
    now: () => began + monotonic,
    monotonic: () => monotonic,
    setTimeout(callback, ms) {
      const timer = { due: monotonic + (ms > 0 ? ms : 0), callback };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer) => timers.delete(timer as Timer),
    async advance(ms) {
      const target = monotonic + ms;
      await rest();
      for (let timer = nextDue(timers, target); timer; timer = nextDue(timers, target)) {
        timers.delete(timer);
        monotonic = Math.max(timer.due, monotonic);
        timer.callback();
        await rest();
      }
      monotonic = Math.max(target, monotonic);
    },
    wallJump: (ms) => {
      began += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}

async function rest(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Of timers with the same time, the one that was set first: a Set keeps that order. */
function nextDue(timers: ReadonlySet<Timer>, latest: number): Timer | undefined {
  let next: Timer | undefined;
  for (const timer of timers) if (timer.due <= latest && (next === undefined || timer.due < next.due)) next = timer;
  return next;
}
