import type { Warn } from '../executor/guard.ts';
import type { Clock } from '../index.ts';
import { systemClock } from '../run/clock.ts';
import { toErrorData } from '../run/error-data.ts';
import { checkRunId } from '../run/run-id.ts';

/** A host's clock that cannot hurt: where it throws, the clock of this machine stands in. Warned of once. */
export function clockOf(clock: Clock | undefined, warn: Warn): Clock {
  if (!clock) return systemClock;
  let isWarned = false;
  const either = <T>(ask: () => T, instead: () => T): T => {
    try {
      return ask();
    } catch (error) {
      if (!isWarned)
        warn('fan-out: the clock threw; the clock of this machine stands in', { error: toErrorData(error) });
      isWarned = true;
      return instead();
    }
  };
  return {
    now: () => either(() => clock.now(), systemClock.now),
    monotonic: () => either(() => clock.monotonic(), systemClock.monotonic),
    setTimeout: (callback, ms) =>
      either(
        () => clock.setTimeout(callback, ms),
        () => systemClock.setTimeout(callback, ms),
      ),
    clearTimeout: (timer) =>
      either(
        () => clock.clearTimeout(timer),
        () => {},
      ),
  };
}

/** Run ids from the host's port; a random one where the port throws, gives none, or one that another model has. */
export function idsOf(ids: (() => string) | undefined, warn: Warn): () => string {
  const given = new Set<string>();
  return () => {
    if (!ids) return crypto.randomUUID();
    try {
      const id = checkRunId(ids());
      if (given.has(id)) throw new TypeError(`ids gave ${JSON.stringify(id)} to another model already`);
      given.add(id);
      return id;
    } catch (error) {
      warn('fan-out: ids gave no run id; a random one is used', { error: toErrorData(error) });
      return crypto.randomUUID();
    }
  };
}
