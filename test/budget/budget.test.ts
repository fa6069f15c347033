import { createBudget } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { call, stores, use } from './stores.ts';

const exceeded = { code: 'BUDGET_EXCEEDED' };
const exactly = { outputTokens: 0, seconds: 0 };

describe.each(stores)('a budget with its books %s', (_, store) => {
  const budgetOf = (options: Omit<Parameters<typeof createBudget>[0], 'store'>) =>
    createBudget({ expected: exactly, ...options, store: store() });

  test('refuses a caller whose window is used up, and no other caller (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100, clock: testClock() });
    await budget.check('ada');
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(60, 40));
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
    await expect(budget.reserve('ada', call('run', 2, { inputTokens: 0 }))).rejects.toMatchObject(exceeded);
    await budget.check('grace');
    await budget.reserve('grace', call('other', 1));
  });

  test('a limit of 0 lets nothing through (supervision 4)', async () => {
    await expect(budgetOf({ seconds: 0 }).check('')).rejects.toMatchObject(exceeded);
  });

  test('counts input and output tokens, seconds, and dollars by the price table (supervision 4)', async () => {
    const prices = { 'acme/small': { inputPerMillion: 2, outputPerMillion: 10 } };
    const budget = budgetOf({ usd: 1, prices, windowMs: 60_000 });
    const spend = await budget.commit(await budget.reserve('ada', call('run', 1)), use(1_000, 500, 1.5));
    expect(spend).toEqual({ tokens: 1_500, usd: 0.007, seconds: 1.5 });
    const reserved = { tokens: 0, usd: 0, seconds: 0 };
    expect(await budget.standing('ada')).toEqual({ spent: spend, reserved, limits: { usd: 1 }, windowMs: 60_000 });
  });

  test('the window rolls: what is older than it counts no more (supervision 4)', async () => {
    const clock = testClock(1_000_000);
    const budget = budgetOf({ tokens: 100, windowMs: 60_000, clock });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(60));
    await clock.advance(30_000);
    await budget.commit(await budget.reserve('ada', call('run', 2)), use(40));
    await clock.advance(29_999);
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
    await clock.advance(1);
    await budget.check('ada');
    expect((await budget.standing('ada')).spent.tokens).toBe(40);
    await clock.advance(30_000);
    expect((await budget.standing('ada')).spent.tokens).toBe(0);
  });

  test('the window is 7 days where nothing is said (supervision 4)', async () => {
    const clock = testClock(1_000_000);
    const budget = budgetOf({ tokens: 100, clock });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(100));
    await clock.advance(7 * 86_400_000 - 1);
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
    await clock.advance(1);
    await budget.check('ada');
  });

  test('of a hundred calls at once, only those get through whose estimates fit together (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 1_000 });
    const calls = Array.from({ length: 100 }, (_, i) =>
      budget.reserve('ada', call(`run-${i}`, 1, { inputTokens: 100 })),
    );
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
  });

  test('many calls cannot go far over a limit of which their input says nothing (supervision 4)', async () => {
    const budget = createBudget({ tokens: 100, seconds: 60, store: store() });
    const calls = Array.from({ length: 100 }, (_, i) => budget.reserve('ada', call(`run-${i}`, 1, { inputTokens: 0 })));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
  });

  test('a single call is made while anything is left, however much it is expected to take (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    await budget.commit(await budget.reserve('ada', call('run', 1, { inputTokens: 5_000 })), use(99));
    const large = await budget.reserve('ada', call('run', 2, { inputTokens: 5_000 }));
    // It holds what it may take, so that no second one goes beside it.
    await expect(budget.reserve('ada', call('other', 1, { inputTokens: 1 }))).rejects.toMatchObject(exceeded);
    await budget.commit(large, use(40));
    expect((await budget.standing('ada')).spent.tokens).toBe(139);
    await expect(budget.reserve('ada', call('run', 3, { inputTokens: 1 }))).rejects.toMatchObject(exceeded);
  });

  test('a refund gives back what a call held, and leaves nothing of it (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    const reservation = await budget.reserve('ada', call('run', 1, { inputTokens: 100 }));
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
    await budget.refund(reservation);
    expect(await budget.standing('ada')).toMatchObject({
      spent: { tokens: 0, usd: 0, seconds: 0 },
      reserved: { tokens: 0, usd: 0, seconds: 0 },
    });
  });

  test('a turn that is made again after a crash takes the place of the first one (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 60 });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(60));
    // There is nothing left for a second turn, but this is the first one again.
    await expect(budget.reserve('ada', call('run', 2))).rejects.toMatchObject(exceeded);
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(50));
    expect((await budget.standing('ada')).spent.tokens).toBe(50);
  });

  test('a reservation of the same key takes the place of the earlier one (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    await budget.reserve('ada', call('run', 1, { inputTokens: 80 }));
    await budget.reserve('ada', call('run', 1, { inputTokens: 90 }));
    expect((await budget.standing('ada')).reserved.tokens).toBe(90);
  });

  test('a turn that was counted and is refunded when made again stays counted (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(60));
    await budget.refund(await budget.reserve('ada', call('run', 1)));
    expect((await budget.standing('ada')).spent.tokens).toBe(60);
  });

  test('reservations that are unknown, foreign or settled twice do no harm (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    const reservation = await budget.reserve('ada', call('run', 1));
    await budget.refund({ ...reservation, key: 'nobody:1' });
    await budget.refund({ ...reservation, callerId: 'grace' });
    await budget.commit(reservation, use(30));
    await budget.commit(reservation, use(30));
    await budget.refund(reservation);
    expect(await budget.standing('ada')).toMatchObject({ spent: { tokens: 30 }, reserved: { tokens: 0 } });
    // What was used was used, whether it had been reserved here or not.
    await budget.commit({ ...reservation, key: 'elsewhere:1' }, use(5));
    expect((await budget.standing('ada')).spent.tokens).toBe(35);
  });

  test('what a dead process had reserved is free again after 15 minutes (supervision 4)', async () => {
    const clock = testClock(1_000_000);
    const budget = budgetOf({ tokens: 100, clock });
    const reservation = await budget.reserve('ada', call('run', 1, { inputTokens: 100 }));
    await clock.advance(899_999);
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
    await clock.advance(1);
    await budget.check('ada');
    await budget.commit(reservation, use(70));
    expect(await budget.standing('ada')).toMatchObject({ spent: { tokens: 70 }, reserved: { tokens: 0 } });
  });

  test.for([Number.NaN, Number.POSITIVE_INFINITY, -1, '5' as never, null as never])(
    'a use of %s is refused, and the call counts as what it had reserved (supervision 4)',
    async (bad) => {
      const budget = budgetOf({ tokens: 1_000, expected: { outputTokens: 20, seconds: 2 } });
      const wrong = [use(bad), use(1, bad), use(1, 1, bad)];
      for (const [i, used] of wrong.entries()) {
        const reservation = await budget.reserve('ada', call('run', i));
        await expect(budget.commit(reservation, used)).rejects.toThrow(TypeError);
      }
      const spent = { tokens: 90, usd: 0, seconds: 6 };
      expect(await budget.standing('ada')).toMatchObject({ spent, reserved: { tokens: 0, usd: 0, seconds: 0 } });
    },
  );

  test('an estimate that is no number reserves nothing (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100 });
    for (const inputTokens of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      await expect(budget.reserve('ada', call('run', 1, { inputTokens }))).rejects.toThrow(TypeError);
    }
    expect((await budget.standing('ada')).reserved.tokens).toBe(0);
  });

  test('a use beyond all measure leaves the sums finite (supervision 4)', async () => {
    const budget = budgetOf({ tokens: 100, windowMs: 1_000, clock: testClock() });
    for (let turn = 1; turn <= 50; turn++) {
      await budget.commit(
        { ...call('run', turn), callerId: 'ada' },
        use(Number.MAX_VALUE, Number.MAX_VALUE / 2, 1e300),
      );
    }
    const { tokens, seconds } = (await budget.standing('ada')).spent;
    expect(Number.isFinite(tokens) && Number.isFinite(seconds)).toBe(true);
    await expect(budget.check('ada')).rejects.toMatchObject(exceeded);
  });

  test('cents that are added up and leave the window leave exactly nothing (supervision 4)', async () => {
    const clock = testClock(1_000_000);
    const budget = budgetOf({ usd: 1, prices: () => 0.1, windowMs: 1_000, clock });
    for (let turn = 1; turn <= 9; turn++) {
      await budget.commit({ ...call('run', turn), callerId: 'ada' }, use(1, 1, 0.1));
      await clock.advance(10);
    }
    expect((await budget.standing('ada')).spent).toEqual({ tokens: 18, usd: 0.9, seconds: 0.9 });
    await clock.advance(1_000);
    expect((await budget.standing('ada')).spent).toEqual({ tokens: 0, usd: 0, seconds: 0 });
  });

  describe('restore', () => {
    test('what the record says a run has spent counts, once (supervision 4)', async () => {
      const budget = budgetOf({ tokens: 100 });
      const run = { runId: 'run', spend: { tokens: 60, usd: 0.5, seconds: 2 } };
      await budget.restore('ada', run);
      await budget.restore('ada', run);
      expect((await budget.standing('ada')).spent).toEqual(run.spend);
    });

    test('what is known of the run is not counted a second time (supervision 4)', async () => {
      const budget = budgetOf({ tokens: 1_000 });
      await budget.commit(await budget.reserve('ada', call('run', 1)), use(30));
      await budget.commit(await budget.reserve('ada', call('run', 2)), use(30));
      await budget.commit(await budget.reserve('ada', call('other', 1)), use(7));
      await budget.restore('ada', { runId: 'run', spend: { tokens: 50, usd: 0, seconds: 0 } });
      expect((await budget.standing('ada')).spent.tokens).toBe(67);
      await budget.restore('ada', { runId: 'run', spend: { tokens: 80, usd: 0, seconds: 0 } });
      expect((await budget.standing('ada')).spent.tokens).toBe(87);
      await budget.commit(await budget.reserve('ada', call('run', 2)), use(10));
      expect((await budget.standing('ada')).spent.tokens).toBe(67);
    });

    test('a spend that is no amount is refused (supervision 4)', async () => {
      const budget = budgetOf({ tokens: 100 });
      const spend = { tokens: 1, usd: Number.NaN, seconds: 0 };
      await expect(budget.restore('ada', { runId: 'run', spend })).rejects.toThrow(TypeError);
      expect((await budget.standing('ada')).spent.tokens).toBe(0);
    });
  });
});
