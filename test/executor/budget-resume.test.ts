import { memoryStore, type RunResult } from 'pawl';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { birthOf, turnKey } from '../fixtures/child-id.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { type NotingBudget, notingBudget } from '../fixtures/noting-ports.ts';

const tools = [toolOf('look')];
const three = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('end')] as const;
const never: ScriptedEntry = () => new Promise(() => {});
/** What so many scripted turns use: 10 tokens in, 5 out, and no time. */
const turns = (count: number) => ({ tokens: 15 * count, usd: (15 * count) / 1024, seconds: 0 });
const clock = testClock();

/** One process that works on the run; what it does next depends on the transcript alone, as with a model at temperature 0. */
async function live(process: MortalProcess, budget: NotingBudget): Promise<RunResult | undefined> {
  const { model } = hostOf({ script: Array.from({ length: 9 }, (): ScriptedEntry => answer) });
  const { run } = hostOf({
    models: { fast: process.model(model) },
    tools,
    clock,
    store: process.store,
    ports: { budget: process.ports(budget) },
  });
  return Promise.race([run({ runId: 'r', callerId: 'ann' }), process.died]);
}

const answer: ScriptedEntry = ({ messages }) => three[(messages.length - 1) / 2] ?? reply('more than was asked');

/** What a process leaves that dies right after its third write: the claim, the first record, the first step. */
async function leftAfterOneStep(budget = notingBudget()) {
  const process = mortalProcess(undefined, 3);
  expect(await live(process, budget)).toBeUndefined();
  return process.left();
}

describe('what a run has spent', () => {
  test('is in its result, its record, its outcome and each report to the host (supervision 4)', async () => {
    const told: unknown[] = [];
    const store = memoryStore({ clock });
    const host = hostOf({
      script: [...three.slice(0, 2), never],
      tools,
      clock,
      store,
      ports: { budget: notingBudget() },
      onOutcome: ({ spend }) => void told.push(spend),
    });
    const run = await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    expect((await store.load('r'))?.spend).toEqual(turns(2));
    expect((await run.cancel()).spend).toEqual(turns(2));
    expect((await store.outcomes.find('r'))?.spend).toEqual(turns(2));
    expect(told).toEqual([turns(2)]);
  });

  test('is absent without a budget', async () => {
    expect(await hostOf().run()).not.toHaveProperty('spend');
  });

  test('is given to a budget that has no memory of its own when the run continues (supervision 4)', async () => {
    const restored: unknown[] = [];
    const budget = { ...notingBudget(), restore: async (...told: unknown[]) => void restored.push(told) };
    expect((await live(mortalProcess(await leftAfterOneStep()), budget))?.spend).toEqual(turns(3));
    expect(restored).toEqual([['ann', { runId: 'r', birth: birthOf('r'), spend: turns(1) }]]);
    expect(budget.log).toEqual([
      `reserve ${turnKey('r', 2)}`,
      `commit ${turnKey('r', 2)}`,
      `reserve ${turnKey('r', 3)}`,
      `commit ${turnKey('r', 3)}`,
    ]);
  });

  test('is nothing to tell of a run that begins', async () => {
    const restored: unknown[] = [];
    const budget = { ...notingBudget(), restore: async (...told: unknown[]) => void restored.push(told) };
    await live(mortalProcess(), budget);
    expect(restored).toEqual([]);
  });

  test('is counted once, wherever the process died: in the books, the record and the result (supervision 4)', async () => {
    let diesAfter = 1;
    for (; diesAfter < 50; diesAfter++) {
      const budget = notingBudget();
      const process = mortalProcess(undefined, diesAfter);
      const result = (await live(process, budget)) ?? (await live(mortalProcess(await process.left()), budget));
      expect(result, `died after write ${diesAfter}`).toMatchObject({ status: 'ok', output: 'end', iterations: 3 });
      expect(result?.spend, `died after write ${diesAfter}`).toEqual(turns(3));
      expect([...budget.counted.keys()]).toEqual([turnKey('r', 1), turnKey('r', 2), turnKey('r', 3)]);
      expect(budget.total()).toEqual(turns(3));
      expect(budget.open.size).toBe(0);
      if (!process.isDead) break;
    }
    expect(diesAfter).toBeGreaterThan(6);
    expect(diesAfter).toBeLessThan(50);
  });
});

describe('a run that continues', () => {
  test('is not checked again: what its own lost turn used up must not end it (supervision 4)', async () => {
    const left = await leftAfterOneStep();
    const budget = notingBudget({ refuseCheck: true });
    expect(await live(mortalProcess(left), budget)).toMatchObject({ status: 'ok', output: 'end' });
    expect(budget.log.filter((line) => line.startsWith('check'))).toEqual([]);
  });

  test('is parked when its next turn is refused: it continues once the limit is raised, after unpark (edges 18)', async () => {
    const next = mortalProcess(await leftAfterOneStep());
    const budget = notingBudget({ refuse: () => true });
    expect(await live(next, budget)).toMatchObject({
      status: 'interrupted',
      error: { code: 'BUDGET_EXCEEDED' },
      iterations: 1,
      spend: turns(1),
    });
    expect(budget.log).toEqual([`reserve ${turnKey('r', 2)}`]);
    expect(await next.store.load('r')).toMatchObject({ parked: { code: 'BUDGET_EXCEEDED' }, attempts: 0 });
  });
});
