import { createCritic } from 'pawl';
import { expect, test } from 'vitest';
import { info } from './supervised-run.ts';

const RUNS = 10_000;

test('ten thousand silent runs cost one timer each, and activity sets none (supervision 3)', () => {
  let [set, cleared] = [0, 0];
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimeout: () => ++set,
    clearTimeout: () => void cleared++,
  };
  let now = 0;
  const run = {
    clock,
    softLimitMs: 1_000,
    elapsedMs: () => now,
    tallies: () => ({ iteration: 0, maxIterations: 1, usage: {} as never }),
    tail: () => [],
    nudge() {},
    raiseSteps() {},
    kill() {},
  };
  const critic = createCritic({ escalator: () => null });
  const handles = Array.from({ length: RUNS }, () => critic.monitor(info, run));
  expect(set - cleared).toBe(RUNS);

  const timers = set;
  for (now = 0; now < 5; now++) for (const handle of handles) handle?.onActivity({ type: 'delta' });
  expect(set).toBe(timers);
  for (const handle of handles) handle?.stop();
  expect(set - cleared).toBe(0);
});
