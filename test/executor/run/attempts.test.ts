import { createExecutor, defineAgent, memoryStore, type ObservedRun, type RunEvent } from 'pawl';
import { callTool, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { isAttempt, previousAttempt } from '../../../src/run/attempt.ts';
import { type HostOptions, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { type Left, mortalProcess } from '../../fixtures/mortal-process.ts';
import { afterCrash } from '../../fixtures/watched-store.ts';

/** A host that keeps its events, and the run as its observers see it. */
function seeingHost(options: HostOptions) {
  const events: RunEvent[] = [];
  const runs = new Map<string, ObservedRun>();
  const onEvent = (event: RunEvent, run: ObservedRun) => {
    events.push(event);
    runs.set(event.runId, run);
  };
  const host = hostOf({ ...options, observers: [{ onEvent }] });
  return { ...host, events, run: (runId = 'a') => runs.get(runId), begin: host.run };
}

const ofType = (events: readonly RunEvent[], type: RunEvent['type']) => events.filter((event) => event.type === type);
const hangingTool = (effect: 'read' | 'idempotent' | 'once') => toolOf('pay', effect, () => new Promise(() => {}));

describe('an attempt', () => {
  test('after a crash has the next number, and says which calls had begun (otel 19)', async () => {
    const store = memoryStore();
    const first = seeingHost({ script: [callTool('pay', {}, 'p1')], tools: [hangingTool('idempotent')], store });
    await first.start({ runId: 'a' });
    await until(() => ofType(first.events, 'tool.started').length === 1);
    expect(first.run()).toMatchObject({ attempt: 1 });
    expect(first.run()).not.toHaveProperty('previous');
    const left = await afterCrash(store);
    const second = seeingHost({ script: [reply('end')], tools: [toolOf('pay', 'idempotent')], store: left });
    await second.begin({ runId: 'a' });
    const { from = 0, at = 0 } = second.run()?.previous ?? {};
    expect(second.run()).toMatchObject({
      attempt: 2,
      previous: { attempt: 1, how: 'lost', calls: [{ callId: 'p1', name: 'pay', attempt: 1 }] },
    });
    expect(at).toBeGreaterThanOrEqual(from);
  });

  test.for([
    ['left', {}],
    ['waited', { waitLingerMs: 1 }],
  ] as const)('that ended well says how: %s (otel 19)', async ([how, defaults]) => {
    const store = memoryStore();
    const ask = toolOf('ask', 'read', (_, { ask }) => ask({ question: '?' }));
    const script = how === 'left' ? [callTool('look'), hang()] : [callTool('ask')];
    const first = seeingHost({ script, tools: [toolOf('look'), ask], store, defaults });
    const run = await first.start({ runId: 'a' });
    if (how === 'left')
      await until(async () => (await store.load('a'))?.iteration === 1 && first.model.calls.length === 2);
    else await run.result;
    await first.executor.shutdown();
    const second = seeingHost({ script: [reply('end')], tools: [toolOf('look'), ask], store });
    for (const { id } of await second.executor.waiting()) await second.executor.control('a').answer(id, 'yes');
    await second.begin({ runId: 'a' });
    expect(second.run()).toMatchObject({ attempt: 2, previous: { attempt: 1, how, calls: [] } });
  });

  test('of a slice says that it was one (otel 19)', async () => {
    const store = memoryStore();
    const script = [callTool('look'), callTool('look'), reply('end')];
    const host = seeingHost({ script, tools: [toolOf('look')], store });
    await host.start({ runId: 'a' }, { drive: 'later' });
    expect(host.run()).toBeUndefined();
    for (let slices = 0; slices < 3; slices++) await host.executor.drive('a', { budgetMs: 0 });
    expect(host.run()).toMatchObject({ attempt: 3, previous: { attempt: 2, how: 'slice' } });
  });

  test('is none where a recorded end is only delivered: the one before is lost (otel 3, 19)', async () => {
    let left: Left | undefined;
    const ends: (ObservedRun | undefined)[] = [];
    for (let write = 1; write < 12; write++) {
      const process = mortalProcess(undefined, write);
      const first = seeingHost({ script: [process.isDead ? hang() : reply('end')], store: process.store });
      await Promise.race([first.begin({ runId: 'a' }), process.died]);
      if (!process.isDead) break;
      left = await process.left();
      if (!left.records.some(({ outcome }) => outcome)) continue;
      const second = seeingHost({ script: [], store: mortalProcess(left).store });
      expect(await second.begin({ runId: 'a' })).toMatchObject({ status: 'ok', output: 'end' });
      ends.push(second.run());
    }
    expect(ends.length).toBeGreaterThan(0);
    for (const run of ends) {
      expect(run).toMatchObject({ previous: { attempt: 1, how: 'lost' } });
      expect(run).not.toHaveProperty('attempt');
    }
  });

  test('of a child says which call began it (otel 19)', async () => {
    const script = [callTool('agent__helper', { prompt: 'Help.' }, 'c1'), reply('helped'), reply('end')];
    const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', subAgents: ['helper'] });
    const runs: ObservedRun[] = [];
    const executor = createExecutor({
      ...{ models: { fast: scriptedModel(script) }, agents: [agent, helper] },
      observers: [{ onEvent: ({ type }, run) => void (type === 'run.started' && runs.push(run)) }],
    });
    await executor.run(agent, { runId: 'a', prompt: 'Go.' });
    const called = { runId: 'a', callId: 'c1', attempt: 1, callAttempt: 1 };
    expect(runs.map(({ parent }) => parent)).toEqual([undefined, called]);
  });

  test('of a record of an earlier version begins at 1, and damaged ones are refused (otel 19, 28)', () => {
    expect(previousAttempt({ updatedAt: 5, iteration: 0 })).toBeUndefined();
    const told = { number: 1, from: 0, told: 'yes' };
    for (const wrong of [
      {},
      { number: -1, from: 0 },
      { number: 1 },
      { number: 1, from: 0, ended: 'lost' },
      told,
      1,
      null,
    ])
      expect(isAttempt(wrong)).toBe(false);
    expect(isAttempt({ ...told, told: 'lost' })).toBe(true);
    expect(isAttempt({ number: 1, from: 0, ended: 'slice' })).toBe(true);
  });
});

describe('events', () => {
  test('say of a `once` call that the process died during it, once, when the run continues (otel 20)', async () => {
    const store = memoryStore();
    const first = seeingHost({ script: [callTool('pay', {}, 'p1')], tools: [hangingTool('once')], store });
    await first.start({ runId: 'a' });
    await until(() => ofType(first.events, 'tool.started').length === 1);
    const second = seeingHost({
      script: [reply('end')],
      tools: [toolOf('pay', 'once')],
      store: await afterCrash(store),
    });
    await second.begin({ runId: 'a' });
    expect(ofType(second.events, 'call.unknown')).toMatchObject([{ step: 1, callId: 'p1', name: 'pay', attempt: 1 }]);
    expect(ofType(first.events, 'call.unknown')).toEqual([]);
  });

  test('of a step have the model, tokens and time of its message; those of a save how long it took (otel 20)', async () => {
    const clock = testClock();
    const host = seeingHost({
      script: [callTool('look'), reply('end')],
      tools: [toolOf('look')],
      store: memoryStore(),
      clock,
    });
    await host.begin({ runId: 'a' });
    const answer = { model: 'scripted/scripted', usage: { inputTokens: 10, outputTokens: 5 }, ms: 0 };
    expect(ofType(host.events, 'step.done')).toMatchObject([{ answer }, { answer }]);
    for (const event of ofType(host.events, 'checkpoint.saved'))
      expect(event).toMatchObject({ ms: expect.any(Number) });
    expect(ofType(host.events, 'checkpoint.saved').length).toBeGreaterThan(0);
  });

  test('say that another process has taken the run, before its end (otel 20)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const patient = { firstChunkMs: 10 ** 9, chunkGapMs: 10 ** 9 };
    const host = seeingHost({ script: [hang()], store, clock, defaults: patient });
    const run = await host.start({ runId: 'a' });
    await until(() => host.model.calls.length === 1);
    store.renew = async () => {
      throw Object.assign(new Error('taken'), { code: 'LEASE_LOST' });
    };
    await clock.advance(20_000);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    const types = host.events.map(({ type }) => type);
    expect(types.filter((type) => type === 'lease.lost')).toHaveLength(1);
    expect(types.indexOf('lease.lost')).toBeLessThan(types.indexOf('run.ended'));
  });
});
