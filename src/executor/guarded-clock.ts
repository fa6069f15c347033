import { type Clock, systemClock } from '../run/clock.ts';
import { toErrorData } from '../run/error-data.ts';
import { letGo } from '../run/thenable.ts';
import type { Warn } from './guard.ts';

/** A host's clock that cannot hurt: where it throws, or tells no time, the clock of this machine stands in. Warned of once. */
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
      if (!isWarned) warn('run: the clock threw; the clock of this machine stands in', { error: toErrorData(error) });
      isWarned = true;
      return instead();
    }
  };
  const time = (ask: () => number, instead: () => number) =>
    attempt(() => {
      const answer = ask();
      letGo(answer);
      if (Number.isFinite(answer)) return answer;
      throw new TypeError('a clock tells the time in finite numbers');
    }, instead);
  return {
    now: () => time(() => clock.now(), systemClock.now),
    monotonic: () => time(() => clock.monotonic(), systemClock.monotonic),
    setTimeout: (callback, ms) =>
      attempt(
        () => clock.setTimeout(callback, ms),
        () => systemClock.setTimeout(callback, ms),
      ),
    clearTimeout: (timer) =>
      attempt(
        () => clock.clearTimeout(timer),
        () => clearQuietly(timer),
      ),
  };
}

/** The timer may be ours, or something that only the host's clock understands. */
function clearQuietly(timer: unknown): void {
  try {
    systemClock.clearTimeout(timer);
  } catch {
    // Then it was not ours, and there is nothing to clear.
  }
}
