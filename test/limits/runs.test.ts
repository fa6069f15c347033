import { rateLimits } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { named, overloaded } from '../executor/failover/lists.ts';
import { hostOf } from '../fixtures/host.ts';
import { hostMachine, startHost } from '../fixtures/host-machine.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { limitedHost, noon, speaking, timed } from './limited.ts';

const look = (n: number) => callTool('look', { n });
/** Two requests at once, then one each ten seconds. */
const six = [{ by: 'model', requestsPerMinute: 6 }] as const;
const play = [look(1), look(2), look(3), reply('done')];

describe('a run whose next model call has a later turn', () => {
  test('rests until a second before it, and calls at its turn: no failure, no process, and no working time (failover 18)', async () => {
    const host = limitedHost({ rules: six, play, agent: { maxRuntimeMs: 900 } });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    expect(host.at).toEqual([0, 0.02]);
    const record = await host.store.load('r');
    expect(record?.waiting).toMatchObject({ wakeAt: noon + 9_000 });
    expect(record?.waiting?.waits).toEqual([
      {
        ...{ id: expect.any(String), kind: 'limit', step: 3, createdAt: noon + 40, dueAt: noon + 9_000 },
        ...{ turnAt: noon + 10_000, model: 'scripted/scripted', rule: 'model' },
      },
    ]);
    expect((await run.result).status).toBe('waiting');
    expect(await host.store.claim('r', 'another', 1)).not.toBeNull();
    await host.clock.advance(16_000);
    expect(host.at).toEqual([0, 0.02, 10, 20]);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: 'done', iterations: 4 }]);
    expect(host.of('model.retry')).toEqual([]);
    expect(host.outcomes[0]?.iterations).toBe(4);
  });

  test('is held in its process for a turn within holdMs, which is no working time either (failover 18)', async () => {
    const host = limitedHost({ rules: six, play, holdMs: 30_000, agent: { maxRuntimeMs: 1_000 } });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(30_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(host.at).toEqual([0, 0.02, 10, 20]);
    expect(host.of('wait.opened')).toEqual([]);
    expect(host.of('step.done').map(({ answer }) => answer?.ms)).toEqual([0, 0, 0, 0]);
  });

  test('rests by default for a turn that is more than two seconds away, and is held for a sooner one (failover 18)', async () => {
    for (const [requestsPerMinute, waits] of [
      [30, 0],
      [29, 1],
    ] as const) {
      const host = limitedHost({
        rules: [{ by: 'model', requestsPerMinute }],
        play: [look(1), look(2), reply('done')],
      });
      await host.start({ runId: 'r' });
      await host.clock.advance(5_000);
      expect([requestsPerMinute, host.of('wait.opened').length]).toEqual([requestsPerMinute, waits]);
      expect(host.at[2]).toBeCloseTo(60 / requestsPerMinute, 2);
      expect(host.outcomes).toMatchObject([{ status: 'ok' }]);
    }
  });

  test('has no time limit of its model while it is held (failover 18)', async () => {
    const host = limitedHost({
      rules: six,
      play,
      holdMs: 30_000,
      defaults: { firstChunkMs: 1_000, chunkGapMs: 1_000 },
    });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(30_000);
    expect(await run.result).toMatchObject({ status: 'ok' });
  });

  test('is stopped at once by a cancel, held or at rest; its turn is lost (failover 19)', async () => {
    for (const holdMs of [2_000, 60_000]) {
      const host = limitedHost({ rules: six, play, holdMs });
      const run = await host.start({ runId: 'r' });
      await host.clock.advance(5_000);
      await host.executor.control('r').cancel('enough');
      await host.clock.advance(500);
      if (holdMs > 2_000) expect(await run.result).toMatchObject({ status: 'cancelled' });
      expect(host.outcomes).toMatchObject([{ status: 'cancelled' }]);
      await host.clock.advance(60_000);
      expect(host.at).toHaveLength(2);
    }
  });

  test('keeps its turn where it is woken 0.85 s late, and takes another one after 0.95 s: the rest of the second is for its way to the model (failover 18, 19)', async () => {
    const firstAfter = async (lateMs: number) => {
      const clock = testClock(noon);
      const first = limitedHost({ rules: six, play, clock });
      await first.start({ runId: 'r' });
      await clock.advance(1_000);
      const [wait] = await first.executor.waiting({ kind: 'limit' });
      const turnAt = wait?.kind === 'limit' ? wait.turnAt : Number.NaN;
      await first.executor.shutdown();
      await clock.advance(turnAt + lateMs - clock.now());
      const next = limitedHost({ rules: six, play: [look(4), reply('done')], clock, store: first.store });
      await next.executor.recover();
      await clock.advance(30_000);
      await next.executor.shutdown();
      return { turnAt: (turnAt - noon) / 1_000, at: next.at[0] };
    };
    const [kept, lost] = [await firstAfter(850), await firstAfter(950)];
    expect(kept.at).toBeCloseTo(kept.turnAt + 0.85, 5);
    expect(lost.at).toBeGreaterThan(lost.turnAt + 1);
  });

  test('takes another turn where it is woken more than a second late (failover 18)', async () => {
    const clock = testClock(noon);
    const first = limitedHost({ rules: six, play, clock });
    await first.start({ runId: 'r' });
    await clock.advance(5_000);
    await first.executor.shutdown();
    await clock.advance(60_000);
    // A fleet that was down sends no minute's calls at once.
    const { store } = first;
    const next = limitedHost({ rules: six, play: [look(4), look(5), reply('done')], clock, store });
    await next.executor.recover();
    await clock.advance(30_000);
    expect(next.at).toEqual([65, 65.02, 75]);
    expect(next.outcomes).toMatchObject([{ status: 'ok' }]);
  });

  test('keeps its turn where a person wakes it early, and asks again (failover 18)', async () => {
    const host = limitedHost({ rules: [{ by: 'model', requestsPerMinute: 2 }], play });
    await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    const [wait] = await host.executor.waiting({ kind: 'limit' });
    expect(wait).toMatchObject({ runId: 'r', turnAt: noon + 30_000, kind: 'limit' });
    await host.executor.control('r').wake(wait?.id ?? '');
    await host.clock.advance(24_000);
    expect(host.at).toEqual([0, 0.02]);
    const [again] = await host.executor.waiting({ kind: 'limit' });
    expect(again).toMatchObject({ turnAt: noon + 30_000 });
    await host.clock.advance(1_000);
    expect(host.at).toEqual([0, 0.02, 30]);
  });

  test('that one rule holds back has no place in the others until then: it asks them at its turn, and may rest once more (failover 17, 18)', async () => {
    const rules = [
      { by: 'model', requestsPerMinute: 15 },
      { by: 'label:tenant', requestsPerMinute: 6 },
    ] as const;
    const long = [look(1), look(2), look(3), look(4), reply('done')];
    const host = limitedHost({ rules, play: [...long, ...long] });
    const waitOf = async () => (await host.store.load('r'))?.waiting?.waits[0];
    await host.start({ runId: 'r', labels: { tenant: 'acme' } });
    await host.clock.advance(5_000);
    expect(await waitOf()).toMatchObject({ rule: 'label:tenant', isPart: true, turnAt: noon + 10_000 });
    await host.clock.advance(3_000);
    // The model is free: a run without a tenant gets two turns at once, and the next one at 12.
    await host.start({ runId: 's' });
    await host.clock.advance(1_500);
    expect(host.at.map(Math.round)).toEqual([0, 0, 8, 8]);
    await host.clock.advance(1_500);
    expect(await waitOf()).toMatchObject({ rule: 'model', turnAt: noon + 16_000 });
    expect(await waitOf()).not.toHaveProperty('isPart');
    await host.clock.advance(30_000);
    expect(host.at.map(Math.round).slice(0, 6)).toEqual([0, 0, 8, 8, 12, 16]);
  });

  test('reserves nothing in a budget while it rests (failover 18)', async () => {
    const budget = notingBudget();
    const host = limitedHost({ rules: six, play, ports: { budget } });
    await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    expect(budget.open.size).toBe(0);
    expect(budget.counted.size).toBe(2);
    await host.clock.advance(16_000);
    expect(host.outcomes).toMatchObject([{ status: 'ok' }]);
    expect(budget.counted.size).toBe(4);
  });

  test('leaves an outage as it is: each retry takes a turn, and neither its wait nor its failures count twice (failover 18)', async () => {
    const rules = [{ by: 'model', requestsPerMinute: 1 }] as const;
    const host = limitedHost({
      rules,
      play: [look(1), overloaded, overloaded, reply('done')],
      defaults: { modelAttempts: 1 },
    });
    await host.start({ runId: 'r' });
    await host.clock.advance(20_000);
    const since = noon + 20;
    const waitsNow = async () => (await host.store.load('r'))?.waiting?.waits;
    expect(await waitsNow()).toMatchObject([{ kind: 'retry', failures: 1, since }]);
    await host.clock.advance(20_000);
    expect(host.at).toEqual([0, 0.02]);
    expect(await waitsNow()).toMatchObject([
      { kind: 'retry', failures: 1, since },
      { kind: 'limit', turnAt: noon + 60_000 },
    ]);
    await host.clock.advance(25_000);
    expect(host.at).toEqual([0, 0.02, 60]);
    expect(await waitsNow()).toMatchObject([{ kind: 'retry', failures: 2, since }]);
    await host.clock.advance(120_000);
    expect(host.at).toEqual([0, 0.02, 60, 120.02]);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
  });

  test('rests also before a retry in its process, and what the failed request used is counted (failover 18)', async () => {
    const host = limitedHost({ rules: six, play: [look(1), overloaded, reply('done')] });
    await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    expect(host.of('model.retry')).toHaveLength(1);
    expect((await host.store.load('r'))?.waiting?.waits).toMatchObject([{ kind: 'limit', turnAt: noon + 10_000 }]);
    await host.clock.advance(6_000);
    expect(host.at).toEqual([0, 0.02, 10]);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
  });
});

describe('a run that cannot rest', () => {
  test('is held, however long: without a store, and in a machine of its host (failover 18)', async () => {
    const plain = limitedHost({ rules: six, play });
    const { limits, clock } = {
      limits: rateLimits({ store: plain.store, rules: six, clock: plain.clock }),
      clock: plain.clock,
    };
    const { model, at } = timed(play, clock);
    const host = hostOf({ models: { fast: model }, clock, limits, tools: [] });
    const run = await host.executor.start(plain.agent, { prompt: 'Go.', runId: 'r' });
    await clock.advance(30_000);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(at).toEqual([0, 0.02, 10, 20]);

    const hosted = limitedHost({ rules: six, play });
    const machine = startHost(hostMachine(hosted.executor, hosted.agent));
    await hosted.clock.advance(30_000);
    expect(hosted.at).toEqual([0, 0.02, 10, 20]);
    expect(hosted.of('wait.opened')).toEqual([]);
    machine.stop();
  });

  test('continues a cut reply in its process: what it has of it is not given up (failover 18)', async () => {
    const clock = testClock(noon);
    const { model, at } = speaking(
      [{ text: 'half', finish: 'length' }, { text: ' of', finish: 'length' }, { text: ' it' }],
      clock,
    );
    const host = limitedHost({ rules: six, models: { fast: model }, clock, agent: { onCutAnswer: 'continue' } });
    const run = await host.start({ runId: 'r' });
    await clock.advance(20_000);
    expect(at).toEqual([0, 0.02, 10]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'half of it' });
  });
});

describe('the turn of a request', () => {
  test('is taken by each model of a list, and a turn at one is none at another (failover 17)', async () => {
    const clock = testClock(noon);
    const opus = named('anthropic/opus', [overloaded, overloaded, overloaded, reply('done')]);
    const gpt = named('openai/gpt', [overloaded, overloaded, overloaded]);
    const models = {
      fast: [
        { model: opus, maxAttempts: 1 },
        { model: gpt, maxAttempts: 1 },
      ],
    } as never;
    const host = limitedHost({ rules: [{ by: 'model', requestsPerMinute: 60 }], models, clock });
    await host.start({ runId: 'r' });
    await clock.advance(10_000);
    expect([opus.calls.length, gpt.calls.length]).toEqual([1, 1]);
    expect((await host.store.load('r'))?.waiting?.waits).toMatchObject([{ kind: 'retry' }]);
  });

  test('is not taken where a middleware answers for the model (failover 17)', async () => {
    const answer = { model: async (_: unknown, next: () => Promise<never>) => (host.at.length < 1 ? next() : cached) };
    const cached = {
      message: { role: 'assistant', content: [{ type: 'text', text: 'kept' }] },
      usage: {},
      finishReason: 'stop',
    };
    const host = limitedHost({
      rules: [{ by: 'model', requestsPerMinute: 1 }],
      play: [look(1)],
      middleware: [answer as never],
    });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(1_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'kept' });
  });

  test('is the latest of all rules that match; a rule by a caller or label that the run does not have matches nothing (failover 16)', async () => {
    const rules = [
      { by: 'callerId', requestsPerMinute: 6 },
      { by: 'label:tenant', requestsPerMinute: 2 },
      { by: 'tier', requestsPerMinute: 600 },
    ] as const;
    const runOf = async (invocation: { callerId?: string; labels?: Record<string, string> }) => {
      const host = limitedHost({ rules, play, holdMs: 100_000 });
      await host.start({ runId: 'r', ...invocation });
      await host.clock.advance(100_000);
      return host.at.map(Math.floor);
    };
    expect(await runOf({})).toEqual([0, 0, 0, 0]);
    expect(await runOf({ callerId: 'ada' })).toEqual([0, 0, 10, 20]);
    expect(await runOf({ callerId: 'ada', labels: { tenant: 'acme' } })).toEqual([0, 0, 30, 60]);
    expect(await runOf({ labels: { team: 'blue' } })).toEqual([0, 0, 0, 0]);
  });

  test('counts tokens by an estimate, and what is reported afterwards moves the next turn (failover 16)', async () => {
    const rules = [{ by: 'model', tokensPerMinute: 6_000 }] as const;
    const secondAfter = async (used: number) => {
      const clock = testClock(noon);
      const { model, at } = speaking(
        [
          { text: 'a', finish: 'length', used },
          { text: 'b', used },
        ],
        clock,
      );
      const host = limitedHost({ rules, models: { fast: model }, clock, agent: { onCutAnswer: 'continue' } });
      await host.start({ runId: 'r' });
      await clock.advance(60_000);
      return at[1] ?? 0;
    };
    // 300 tokens of output are expected, and one second may lag. 2,000 tokens are 20 s.
    expect(await secondAfter(0)).toBeCloseTo(2, 0);
    expect(await secondAfter(2_000)).toBeCloseTo(19, 0);
    expect(await secondAfter(10)).toBe(0.02);
  });

  test('comes for a request with more tokens than a minute has, with a line in the log; what follows waits longer (failover 21)', async () => {
    const rules = [{ by: 'model', tokensPerMinute: 100 }] as const;
    const clock = testClock(noon);
    const { model, at } = speaking([{ text: 'done' }, { text: 'done' }], clock);
    const host = limitedHost({ rules, models: { fast: model }, clock });
    await host.start({ runId: 'r', prompt: 'x'.repeat(4_000) });
    await host.clock.advance(1_000);
    expect(host.outcomes).toMatchObject([{ status: 'ok' }]);
    expect(host.warned).toMatchObject([
      {
        fields: { event: 'limit.exceeded', runId: 'r', by: 'model', tokensPerMinute: 100, model: 'scripted/scripted' },
      },
    ]);
    await host.start({ runId: 's' });
    await host.clock.advance(60_000);
    expect(at).toEqual([0]);
    await host.clock.advance(600_000);
    expect(at[1]).toBeGreaterThan(600);
  });

  test('is asked for until the store answers: a store that is away gives none (failover 19)', async () => {
    const host = limitedHost({ rules: six, play });
    let isAway = true;
    const { takeTurns } = host.store.limits;
    const flaky = {
      ...host.store,
      limits: {
        takeTurns: (...take: Parameters<typeof takeTurns>) =>
          isAway ? Promise.reject(new Error('away')) : takeTurns(...take),
      },
    };
    const limits = rateLimits({ store: flaky, rules: six, clock: host.clock });
    const { model, at } = timed(play, host.clock);
    const other = hostOf({ models: { fast: model }, limits, clock: host.clock, store: host.store, random: () => 0.5 });
    await other.executor.start(host.agent, { prompt: 'Go.', runId: 'r' });
    await host.clock.advance(60_000);
    expect(at).toEqual([]);
    expect(other.warned).toMatchObject([{ fields: { event: 'limit.failed', runId: 'r' } }]);
    isAway = false;
    await host.clock.advance(35_000);
    expect(at.length).toBeGreaterThan(1);
  });

  test('may come from a port of the host: what it throws ends no run, and a wait that is none is asked for again (failover 16)', async () => {
    const waits = [Number.NaN, 0, 400, 0];
    const limits = {
      take: async () => ({ waitMs: waits.shift() ?? 0 }),
      report: () => {
        throw new Error('oops');
      },
    };
    const host = limitedHost({ play, limits: limits as never });
    await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
    expect(host.at).toHaveLength(4);
    expect(host.of('wait.opened')).toEqual([]);
    expect(new Set(host.warned.map(({ fields }) => fields.event))).toEqual(new Set(['limit.failed', 'callback.threw']));
  });
});
