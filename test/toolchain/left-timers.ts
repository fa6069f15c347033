// Hundreds of files share a worker, and many of them leave executors behind, as a killed process does: each would look for due runs
// until the worker ends. What waits for the clock of the machine when a file is over waits for nothing more.
import { afterAll } from 'vitest';
import { systemClock } from '../../src/values/clock.ts';

const { setTimeout: begin, clearTimeout: end } = systemClock;
const pending = new Set<unknown>();

Object.assign(systemClock, {
  setTimeout(callback: () => void, ms: number) {
    const timer = begin(() => {
      pending.delete(timer);
      callback();
    }, ms);
    pending.add(timer);
    return timer;
  },
  clearTimeout(timer: unknown) {
    pending.delete(timer);
    end(timer);
  },
} satisfies Partial<typeof systemClock>);

afterAll(async () => {
  // What is under way sets its timer again a moment later.
  for (let turn = 0; turn < 5; turn++) {
    for (const timer of pending) systemClock.clearTimeout(timer);
    await new Promise((resolve) => setImmediate(resolve));
  }
  Object.assign(systemClock, { setTimeout: begin, clearTimeout: end });
});
