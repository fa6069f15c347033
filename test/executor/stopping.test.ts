import { getEventListeners } from 'node:events';
import { memoryStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../src/values/errors.ts';
import { torture } from '../crash/random.ts';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
/** Of ten runs each. */
const BATCHES = torture > 1 ? 100 : 30;

describe("the caller's signal", () => {
  test('cancels the run, in the model call: the model is aborted, the record goes (executor 5)', async () => {
    const store = memoryStore();
    const controller = new AbortController();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    const run = await host.start({ runId: 'r' }, { signal: controller.signal });
    await until(() => host.model.calls.length === 2);
    controller.abort(new Error('the user left'));
    expect(await run.result).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' }, iterations: 1 });
    expect(host.model.calls[1]?.signal?.aborted).toBe(true);
    expect(await store.load('r')).toBeNull();
  });

  test('with a shutdown as its reason leaves the run for the next process, without a failed start to its name (executor 5)', async () => {
    const store = memoryStore();
    const controller = new AbortController();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    const run = await host.start({ runId: 'r' }, { signal: controller.signal });
    await until(async () => (await store.load('r'))?.iteration === 1);
    controller.abort(new Error('stop', { cause: new ShutdownError() }));
    expect(await run.result).toMatchObject({ status: 'interrupted' });
    expect(await onlyRecord(store)).toMatchObject({ iteration: 1, attempts: 0 });
  });

  test('carries its reason to the tools (executor 5)', async () => {
    for (const [reason, code] of [
      [new ShutdownError(), 'ERR_SHUTDOWN'],
      [new Error('enough'), 'CANCELLED'],
    ] as const) {
      const controller = new AbortController();
      const called = gate();
      let signal: AbortSignal | undefined;
      const stubborn = toolOf('look', 'read', (_, context) => {
        signal = context.signal;
        return called.pass();
      });
      const run = hostOf({ script: [callTool('look')], tools: [stubborn] }).run({}, { signal: controller.signal });
      await called.reached;
      controller.abort(reason);
      await run;
      expect(signal?.reason).toMatchObject({ code });
    }
  });

  test.for([
    ['a cancel', new Error('x'), 'cancelled', 0],
    ['a shutdown', new ShutdownError(), 'interrupted', 1],
  ] as const)('that is aborted already, with %s, lets nothing begin (executor 5)', async ([, reason, status, left]) => {
    const store = memoryStore();
    const host = hostOf({ store });
    const result = await host.run({ runId: 'r' }, { signal: AbortSignal.abort(reason) });
    expect(result.status).toBe(status);
    expect(host.model.calls).toEqual([]);
    expect(await store.listInterrupted()).toHaveLength(left);
  });

  test(`has no listener of ours left after ${BATCHES * 10} runs, and no warning of a leak (executor 5)`, async () => {
    const warnings: unknown[] = [];
    const note = (warning: unknown) => warnings.push(warning);
    process.on('warning', note);
    const { signal } = new AbortController();
    const turn: ScriptedEntry = ({ messages }) => (messages.length === 1 ? callTool('look') : reply('x'));
    const host = hostOf({
      script: Array.from({ length: BATCHES * 20 }, () => turn),
      tools,
      store: memoryStore(),
    });
    const run = () => host.run({}, { signal });
    for (let batch = 0; batch < BATCHES; batch++) {
      const results = await Promise.all(Array.from({ length: 10 }, run));
      expect(results.every(({ status }) => status === 'ok')).toBe(true);
    }
    await settle();
    process.off('warning', note);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(warnings).toEqual([]);
  }, 180_000);
});

describe('the deadline', () => {
  test('ends the run as timeout and takes its record (executor 5)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const host = hostOf({
      script: [callTool('look'), hang()],
      tools,
      store,
      clock,
      agent: { maxRuntimeMs: 5_000 },
      retention: { records: 0 },
    });
    const run = host.run({ runId: 'r' });
    await clock.advance(5_000);
    expect(await run).toMatchObject({ status: 'timeout', error: { code: 'DEADLINE_EXCEEDED' }, iterations: 1 });
    expect(await store.load('r')).toBeNull();
    expect(clock.pending).toBe(0);
  });

  test('ends a run on time whose tool ignores the abort and never returns (executor 7)', async () => {
    const clock = testClock();
    const deaf = toolOf('look', 'once', () => new Promise(() => {}));
    const host = hostOf({ script: [callTool('look')], tools: [deaf], clock, agent: { maxRuntimeMs: 5_000 } });
    const run = host.run();
    await clock.advance(5_000);
    expect((await run).status).toBe('timeout');
  });

  test('is ten minutes by default (executor 9)', async () => {
    const clock = testClock();
    const host = hostOf({ script: [hang()], clock, defaults: { firstChunkMs: 10 ** 9, chunkGapMs: 10 ** 9 } });
    const run = host.run();
    await clock.advance(600_000);
    expect((await run).status).toBe('timeout');
  });

  test('no timer is left after runs of any end (executor 7)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    for (const script of [[reply('x')], [callTool('look'), reply('x')], []]) {
      await hostOf({ script, tools, store, clock, retention: { records: 0 } }).run();
      expect(clock.pending).toBe(0);
    }
  });
});

describe('cancel', () => {
  test('ends the run for good and gives its result, with the reason in the error (finalize 1, 7)', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    const result = await run.cancel('user asked');
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED', message: 'user asked' } });
    expect(result).toBe(await run.result);
    expect(await store.load('r')).toBeNull();
  });

  test('may be asked for again, and after the end: the same result (finalize 8)', async () => {
    const host = hostOf();
    const run = await host.start();
    const result = await run.result;
    expect(await run.cancel()).toBe(result);
    expect(await run.cancel()).toMatchObject({ status: 'ok' });
  });

  test.for([
    ['cancel, then shutdown', 'cancelled', 0],
    ['shutdown, then cancel', 'interrupted', 1],
  ] as const)('%s in one moment: the first cause stands (finalize 8, faults 24)', async ([order, status, left]) => {
    const store = memoryStore();
    const host = hostOf({ script: [hang()], store });
    const run = await host.start({ runId: 'r' });
    const stops = [() => run.cancel(), () => host.executor.shutdown()];
    const [first, second] = order.startsWith('cancel') ? stops : stops.reverse();
    void first?.();
    void second?.();
    expect((await run.result).status).toBe(status);
    expect(await store.listInterrupted()).toHaveLength(left);
  });

  test('that comes while the answer is being recorded comes too late: success wins (finalize 1)', async () => {
    let cancel = () => {};
    const store = watchedStore({ before: ({ method }) => method === 'outcomes.keep' && cancel() });
    const host = hostOf({ store });
    const run = await host.start({ runId: 'r' });
    cancel = () => void run.cancel();
    expect((await run.result).status).toBe('ok');
    expect(await store.load('r')).toBeNull();
  });
});

describe('shutdown', () => {
  test('leaves live runs in good order, and a start after it is refused and touches nothing (finalize 3)', async () => {
    const store = watchedStore();
    const host = hostOf({ script: [callTool('look'), hang(), hang()], tools, store });
    const runs = await Promise.all([host.start({ runId: 'a' }), host.start({ runId: 'b' })]);
    await until(() => host.model.calls.length >= 3);
    await host.executor.shutdown();
    for (const { result } of runs)
      expect(await result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
    expect(await store.listInterrupted()).toMatchObject([{ attempts: 0 }, { attempts: 0 }]);
    await until(() => store.methods.filter((name) => name === 'release').length === 2);
    store.log.length = 0;
    expect(await host.run({ runId: 'c' })).toMatchObject({ status: 'error', error: { code: 'ERR_SHUTDOWN' } });
    expect(store.log).toEqual([]);
  });

  test('flushes the newest state past the throttle (finalize 3)', async () => {
    const store = memoryStore();
    const checkpointer = createCheckpointerFactory(store, { throttleMs: 3_600_000 });
    const host = hostOf({ script: [callTool('look'), hang()], tools, ports: { checkpointer } });
    await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    expect((await onlyRecord(store)).iteration).toBe(0);
    await host.executor.shutdown();
    expect(await onlyRecord(store)).toMatchObject({ iteration: 1, attempts: 0 });
  });

  test('ends after drainMs though a store hangs, and says which runs were not left in good order', async () => {
    const clock = testClock();
    let isHung = false;
    const store = watchedStore({ before: () => isHung && new Promise(() => {}) }, memoryStore({ clock }));
    const host = hostOf({ script: [hang()], store, clock });
    await host.start({ runId: 'a' });
    isHung = true;
    let isOver = false;
    void host.executor.shutdown({ drainMs: 500 }).then(() => {
      isOver = true;
    });
    await clock.advance(499);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await settle();
    expect(isOver).toBe(true);
    expect(host.warned.at(-1)?.fields).toMatchObject({ runIds: ['a'] });
  });

  test('happens at the end of an await using block', async () => {
    const store = memoryStore();
    {
      const host = hostOf({ script: [hang()], store });
      await using executor = host.executor;
      await executor.start(host.agent, { prompt: 'Go.', runId: 'r' });
    }
    expect(await onlyRecord(store)).toMatchObject({ attempts: 0 });
  });
});
