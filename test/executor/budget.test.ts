import { memoryStore, type RunInfo } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { turnKey } from '../fixtures/child-id.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { speakingModel } from '../fixtures/speaking-model.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
/** What a scripted turn reports: 10 tokens in, 5 out. */
const turns = (count: number, seconds = 0) => ({ tokens: 15 * count, usd: (15 * count) / 1024, seconds });

describe('a budget that is asked before a run', () => {
  test('and refuses it: BUDGET_EXCEEDED, no model call, nothing stored, nothing audited (supervision 4)', async () => {
    const budget = notingBudget({ refuseCheck: true });
    const store = watchedStore();
    const infos: RunInfo[] = [];
    const audit = { startRun: (info: RunInfo) => void infos.push(info) as never };
    const { run, model } = hostOf({ store, ports: { budget, audit } });
    const result = await run({ runId: 'r', callerId: 'ann' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED', name: 'BudgetExceededError' } });
    expect(result.error?.message).toBe('ann has used up its budget');
    expect(budget.log).toEqual(['check ann']);
    expect(model.calls).toHaveLength(0);
    expect(store.methods.filter((method) => ['save', 'append', 'outcomes.keep'].includes(method))).toEqual([]);
    expect(infos).toEqual([]);
  });

  test('is asked for the caller of the run, once, before the model is found (executor 2)', async () => {
    const order: string[] = [];
    const { model, ...budget } = { ...notingBudget(), model: hostOf().model };
    const { run } = hostOf({
      models: (tier: string) => {
        order.push(`model ${tier}`);
        return model;
      },
      ports: { budget: { ...budget, check: async (caller) => void order.push(`check ${caller}`) } },
    });
    await run({ callerId: 'bob' });
    expect(order).toEqual(['check bob', 'model fast']);
  });
});

describe('a budget around the model calls of a run', () => {
  test('holds each turn before it is asked, and is paid what it used: tokens, seconds, the tier and the model (supervision 4)', async () => {
    const clock = testClock();
    const asked: unknown[] = [];
    const paid: unknown[] = [];
    const inner = notingBudget();
    const budget: typeof inner = {
      ...inner,
      reserve: (callerId, estimate) => {
        asked.push({ callerId, ...estimate });
        return inner.reserve(callerId, estimate);
      },
      commit: (reservation, used) => {
        paid.push({ ...reservation, ...used });
        return inner.commit(reservation, used);
      },
    };
    const slow: ScriptedEntry = async () => {
      await clock.advance(2_500);
      return reply('end');
    };
    const { run } = hostOf({ script: [callTool('look'), slow], tools, clock, ports: { budget } });
    const result = await run({ runId: 'r', callerId: 'ann', prompt: 'x'.repeat(4_000) });
    expect(inner.log).toEqual([
      'check ann',
      `reserve ${turnKey('r', 1)}`,
      `commit ${turnKey('r', 1)}`,
      `reserve ${turnKey('r', 2)}`,
      `commit ${turnKey('r', 2)}`,
    ]);
    const of = { callerId: 'ann', modelTier: 'fast', model: 'scripted/scripted' };
    expect(asked[0]).toMatchObject({ key: turnKey('r', 1), runId: 'r', ...of });
    // By the size of the text, roughly 4 bytes to the token.
    expect((asked[0] as { inputTokens: number }).inputTokens).toBeGreaterThanOrEqual(1_000);
    expect((asked[0] as { inputTokens: number }).inputTokens).toBeLessThan(1_100);
    expect(paid[1]).toMatchObject({
      key: turnKey('r', 2),
      ...of,
      seconds: 2.5,
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(result.spend).toEqual(turns(2, 2.5));
    expect(inner.open.size).toBe(0);
  });

  test('that refuses a turn parks the run with the text it had so far, and without that call (supervision 4, edges 18)', async () => {
    const budget = notingBudget({ refuse: (key) => key === turnKey('r', 3) });
    const model = speakingModel((turn) => ({ text: `thought ${turn}`, calls: [{ name: 'look', input: { turn } }] }));
    const store = memoryStore();
    const { run } = hostOf({ models: { fast: model }, tools, store, ports: { budget } });
    const result = await run({ runId: 'r' });
    expect(result).toMatchObject({
      status: 'interrupted',
      error: { code: 'BUDGET_EXCEEDED' },
      output: 'thought 2',
      iterations: 2,
    });
    expect(result.spend?.tokens).toBe(4);
    expect(model.turns).toBe(2);
    expect(budget.log.slice(-1)).toEqual([`reserve ${turnKey('r', 3)}`]);
    expect(await store.load('r')).toMatchObject({ iteration: 2, parked: { code: 'BUDGET_EXCEEDED' } });
  });

  test('gets back what was held for a call that failed and reported nothing (supervision 4)', async () => {
    const budget = notingBudget();
    const broken = Object.assign(new Error('no such model'), { isRetryable: false });
    const result = await hostOf({ script: [fail(broken)], ports: { budget } }).run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(result.spend).toBeUndefined();
    expect(budget.log).toEqual(['check ', `reserve ${turnKey('r', 1)}`, `refund ${turnKey('r', 1)}`]);
  });

  test.for(['cancel', 'shutdown'] as const)('gets back what a call held that was stopped by a %s', async (stop) => {
    const budget = notingBudget();
    const host = hostOf({ script: [hang()], ports: { budget }, store: memoryStore() });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 1);
    await (stop === 'cancel' ? run.cancel() : host.executor.shutdown());
    await until(() => budget.open.size === 0);
    expect(budget.log).toEqual(['check ', `reserve ${turnKey('r', 1)}`, `refund ${turnKey('r', 1)}`]);
  });
});

/** A turn that used 7 and 3 tokens and broke off, so that it is tried again; and one that answers. */
function brokenOff(times: number) {
  let calls = 0;
  const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } };
  const parts = (isBroken: boolean) => [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'end' },
    { type: 'text-end', id: 't' },
    { type: 'finish', finishReason: { unified: isBroken ? 'interrupted' : 'stop', raw: 'x' }, usage },
  ];
  const doStream = async () => ({ stream: ReadableStream.from(parts(calls++ < times)) });
  return { specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {}, doStream } as never;
}

describe('what failed attempts of a turn used', () => {
  const quick = { random: () => 0 };

  test('is counted in the usage, and paid with the turn that came of them (supervision 4)', async () => {
    const budget = notingBudget();
    const result = await hostOf({ models: { fast: brokenOff(2) }, ...quick, ports: { budget } }).run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', usage: { inputTokens: 21, outputTokens: 9 } });
    expect(result.spend?.tokens).toBe(30);
    expect(budget.log).toEqual(['check ', `reserve ${turnKey('r', 1)}`, `commit ${turnKey('r', 1)}`]);
  });

  test('is counted and paid too when nothing came of them (supervision 4)', async () => {
    const budget = notingBudget();
    const result = await hostOf({ models: { fast: brokenOff(5) }, ...quick, ports: { budget } }).run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' }, usage: { inputTokens: 35 } });
    expect(result.spend?.tokens).toBe(50);
    expect(budget.log).toEqual(['check ', `reserve ${turnKey('r', 1)}`, `commit ${turnKey('r', 1)}`]);
  });

  test('by an optional phase that failed is paid beside what the next phase uses: the books say what the result says (supervision 4)', async () => {
    const budget = notingBudget();
    const phases = [
      { name: 'a', instructions: 'A', optional: true, fallback: 'nothing' },
      { name: 'b', instructions: 'B' },
    ];
    const host = hostOf({ agent: { phases }, models: { fast: brokenOff(5) }, ...quick, ports: { budget } });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', phases: [{ output: 'nothing' }, { output: 'end' }] });
    expect([result.spend?.tokens, budget.total().tokens]).toEqual([60, 60]);
  });
});
