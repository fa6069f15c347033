import type { Warn } from '../../log/log.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { letGo } from '../../values/thenable.ts';

/** A host's clock may use the timers of Node, which treat a longer time as 1 ms. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Wraps a host's clock so that it cannot fail: if it throws, or returns no time, the system clock replaces it. Warns once.
 */
export function guardedClock(clock: Clock | undefined, warn: Warn): Clock {
  if (!clock) return systemClock;
  let isWarned = false;
  const attempt = <T>(ask: () => T, instead: () => T): T => {
    try {
      const answer = ask();
      if (typeof answer !== 'object' || answer === null) return answer;
      letGo(answer);
      return answer;
    } catch (error) {
      const isFirst = !isWarned;
      // Before the warning, which asks for the time itself.
      isWarned = true;
      if (isFirst) warn('clock.threw', { error });
      return instead();
    }
  };
  const time = (ask: () => number, instead: () => number) =>
    attempt(() => {
      const answer = ask();
      letGo(answer);
      if (Number.isFinite(answer)) return answer;
      throw new TypeError('a clock must return finite numbers');
    }, instead);
  /** Timers of the system clock that replace the host's: the host's clock does not know them. */
  const standIns = new WeakSet<object>();
  const standIn = (callback: () => void, ms: number) => {
    const timer = systemClock.setTimeout(callback, ms) as object;
    standIns.add(timer);
    return timer;
  };
  return {
    now: () => time(() => clock.now(), systemClock.now),
    monotonic: () => time(() => clock.monotonic(), systemClock.monotonic),
    setTimeout: (callback, ms) =>
      attempt(
        () => clock.setTimeout(callback, Math.min(ms, MAX_MS)),
        () => standIn(callback, ms),
      ),
    clearTimeout: (timer) => {
      if (typeof timer === 'object' && timer !== null && standIns.has(timer)) return systemClock.clearTimeout(timer);
      return attempt(
        () => clock.clearTimeout(timer),
        () => clearQuietly(timer),
      );
    },
  };
}

/** The timer may be Pawl's, or something that only the host's clock understands. */
function clearQuietly(timer: unknown): void {
  try {
    systemClock.clearTimeout(timer);
  } catch {
    // Then it is the host's timer, and there is nothing to clear.
  }
}
