import { createBudget, memoryStore } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

/** A host whose budget is away, from one of its reservations on, for so many of them. */
function hostWith({ from, times }: { readonly from: number; readonly times: number }, options: HostOptions = {}) {
  const clock = testClock(1_000);
  const inner = memoryBudget();
  let asks = 0;
  const reserve: typeof inner.reserve = async (...asked) => {
    asks += 1;
    if (asks >= from && asks < from + times) throw new StoreUnavailableError('the database is away');
    return inner.reserve(...asked);
  };
  const budget = createBudget({ tokens: 1_000, clock, store: { ...inner, reserve } });
  const script = [callTool('look'), reply('done')];
  return {
    ...hostOf({ clock, script, tools: [toolOf('look')], store: memoryStore({ clock }), ports: { budget }, ...options }),
    clock,
    budget,
  };
}

describe('a budget that is away', () => {
  test('is waited for as a model is, and each call is counted once it answers (operations 14)', async () => {
    const { run, executor, clock, warned, budget } = hostWith({ from: 2, times: 3 });
    const result = run({ runId: 'r', callerId: 'ada' });
    for (let i = 0; i < 5; i++) await clock.advance(1_000);
    expect(await result).toMatchObject({ status: 'waiting' });
    expect(warned[0]?.fields).toMatchObject({ event: 'budget.away', code: 'STORE_UNAVAILABLE', runId: 'r' });
    await executor.recover();
    await until(async () => {
      await clock.advance(1_000);
      return (await executor.find('r'))?.status === 'ended';
    });
    expect((await budget.standing('ada')).spent.tokens).toBe(30);
  });

  test("holds up no call with 'allow', and refuses it with 'refuse' (operations 14)", async () => {
    const allowed = hostWith({ from: 1, times: 9 }, { onBudgetAway: 'allow' });
    expect(await allowed.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done' });
    const refused = hostWith({ from: 2, times: 9 }, { onBudgetAway: 'refuse' });
    const result = await refused.run({ runId: 'r' });
    expect([result.error?.code, refused.model.calls.length]).toEqual(['BUDGET_EXCEEDED', 1]);
  });
});
