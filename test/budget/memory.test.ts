import { createBudget } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { MemoryLedgers } from '../../src/budget/memory.ts';
import { storeOf } from '../../src/budget/store-on-ledgers.ts';
import { call, use } from './stores.ts';

const CALLS = 25_000;

test(`${CALLS} calls of one caller are kept as a few thousand sums, and all of them count (supervision 4)`, async () => {
  const clock = testClock(1_000_000);
  const store = storeOf(new MemoryLedgers());
  const budget = createBudget({ tokens: 1e9, windowMs: 1_000_000, clock, store });
  for (let turn = 1; turn <= CALLS; turn++) {
    await budget.commit({ ...call(`run-${turn % (CALLS / 5)}`, turn), callerId: 'ada' }, use(1));
    if (turn % (CALLS / 200) === 0) await clock.advance(1_000);
  }
  expect((await budget.standing('ada')).spent.tokens).toBe(CALLS);
  const terms = { windowMs: 1_000_000, reservationMs: 1_000, clock };
  expect((await store.leaving('ada', terms)).length).toBeLessThan(4_096 + 1_024 + 2);
  // Half of the window later half of them count, give or take a slice of it.
  await clock.advance(899_500);
  const { tokens } = (await budget.standing('ada')).spent;
  expect(tokens).toBeGreaterThanOrEqual(0.5 * CALLS);
  expect(tokens).toBeLessThan(0.51 * CALLS);
});

test('callers that have nothing left in the window are forgotten (supervision 4)', async () => {
  const clock = testClock(1_000_000);
  const ledgers = new MemoryLedgers();
  const budget = createBudget({ tokens: 1e9, windowMs: 60_000, clock, store: storeOf(ledgers) });
  for (let i = 0; i < 1_000; i++) {
    await budget.commit(await budget.reserve(`caller-${i}`, call('run', 1)), use(1));
  }
  expect(ledgers.callers).toBe(1_000);
  await clock.advance(60_000);
  for (let turn = 0; turn < 600; turn++) await budget.check('ada');
  expect(ledgers.callers).toBe(0);
});
