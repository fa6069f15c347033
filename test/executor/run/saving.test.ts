import { memoryStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { headOfWrite, isWrite, type StoreCall, watchedStore } from '../../fixtures/watched-store.ts';

const steps = (count: number, name = 'look'): ScriptedEntry[] =>
  Array.from({ length: count }, (_, n) => callTool(name, { n }));
const saved = 'run: checkpoint save failed';

describe('a step and the save of the step before it', () => {
  test('the model is asked while the save is under way, but its reply is not acted upon before that has landed (executor 11)', async () => {
    const slow = gate();
    const started: unknown[] = [];
    const store = watchedStore({
      before: (call) => headOfWrite(call)?.iteration === 1 && !headOfWrite(call)?.openStep && slow.pass(),
    });
    const look = toolOf('look', 'read', ({ n }) => void started.push(n));
    const host = hostOf({ script: [...steps(2), reply('end')], tools: [look], store });
    const run = host.run();
    await slow.reached;
    await until(() => host.model.calls.length === 2);
    await settle(50);
    expect(started).toEqual([0]);
    expect(host.model.calls).toHaveLength(2);
    slow.open();
    expect((await run).status).toBe('ok');
    expect(started).toEqual([0, 1]);
  });

  test('an answer is no answer before the step before it has landed (executor 11)', async () => {
    const slow = gate();
    const store = watchedStore({ before: (call) => headOfWrite(call)?.iteration === 1 && slow.pass() });
    const host = hostOf({ script: [...steps(1), reply('end')], tools: [toolOf('look')], store });
    const run = await host.start();
    let isOver = false;
    void run.result.then(() => {
      isOver = true;
    });
    await until(() => host.model.calls.length === 2);
    await settle(50);
    expect([isOver, run.actor.getSnapshot().value]).toEqual([false, { running: 'landing' }]);
    slow.open();
    expect((await run.result).output).toBe('end');
  });

  test('with a store that takes its time no tool of a step starts before the step before is stored (executor 11)', async () => {
    const store = watchedStore({ before: (call) => isWrite(call) && settle(3) });
    const found: [unknown, number | undefined][] = [];
    const look = toolOf('look', 'read', async ({ n }) => void found.push([n, (await store.load('r'))?.iteration]));
    const host = hostOf({ script: [...steps(10), reply('end')], tools: [look], store });
    await host.run({ runId: 'r' });
    expect(found).toEqual(Array.from({ length: 10 }, (_, n) => [n, n]));
  });
});

/** A host on a still clock whose store refuses every write while it is down. */
function fragile(script: ScriptedEntry[], options: Parameters<typeof hostOf>[0] = {}) {
  const clock = testClock();
  const state = { isDown: false, started: [] as unknown[] };
  const down = () => Promise.reject(Object.assign(new Error('disk gone'), { code: 'STORE_UNAVAILABLE' }));
  const store = watchedStore(
    { before: (call: StoreCall) => isWrite(call) && state.isDown && down() },
    memoryStore({ clock }),
  );
  const host = hostOf({
    script: [
      (request) => {
        state.isDown = true;
        const [first] = script;
        return typeof first === 'function' ? first(request) : (first as never);
      },
      ...script.slice(1),
    ],
    store,
    clock,
    ...options,
    tools: (['read', 'idempotent', 'once'] as const).map((effect) =>
      toolOf(effect === 'read' ? 'look' : effect, effect, ({ n }) => void state.started.push(`${effect} ${n}`)),
    ),
  });
  return { clock, state, store, host };
}

describe('while the store fails', () => {
  test('the run continues for maxUnsavedSteps steps, waits, and catches up when the store is back (checkpoint 21)', async () => {
    const { clock, state, store, host } = fragile([...steps(12), reply('end')]);
    const run = host.run({ runId: 'r' });
    await until(() => host.model.calls.length === 10);
    await clock.advance(60_000);
    expect(state.started).toHaveLength(9);
    expect(host.model.calls).toHaveLength(10);
    expect((await store.load('r'))?.iteration).toBe(0);
    state.isDown = false;
    await clock.advance(10_000);
    const result = await run;
    expect(result).toMatchObject({ status: 'ok', iterations: 13, durable: true });
    expect(result.saveErrors).toBeGreaterThan(8);
    expect(state.started).toHaveLength(12);
    expect(host.warnings).toEqual([saved]);
    expect(await store.load('r')).toBeNull();
  });

  test('the bound counts steps in a row: a save that lands in between begins it again (checkpoint 21)', async () => {
    const { state, store, host } = fragile([
      ...steps(6),
      () => {
        state.isDown = false;
        return callTool('look', { n: 6 });
      },
      async () => {
        await until(async () => (await store.load('r'))?.iteration === 7);
        state.isDown = true;
        return callTool('look', { n: 7 });
      },
      ...steps(6).map((_, n) => callTool('look', { n: 8 + n })),
      () => {
        state.isDown = false;
        return reply('end');
      },
    ]);
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 15 });
    expect(await store.load('r')).toBeNull();
  });

  test('everything is in the store once it is back (checkpoint 21)', async () => {
    const { clock, state, store, host } = fragile([...steps(5), () => new Promise(() => {})]);
    void host.run({ runId: 'r' });
    await until(() => host.model.calls.length === 6);
    state.isDown = false;
    await clock.advance(20_000);
    expect(await store.load('r')).toMatchObject({ iteration: 5, messages: { length: 11 } });
  });

  test.for(['once', 'idempotent'])(
    'no %s tool starts while its intent cannot be written (checkpoint 21)',
    async (effect) => {
      const { clock, state, host } = fragile([callTool(effect, { n: 0 }), reply('end')]);
      const run = host.run({ runId: 'r' });
      await clock.advance(120_000);
      expect(state.started).toEqual([]);
      state.isDown = false;
      await clock.advance(10_000);
      expect((await run).status).toBe('ok');
      expect(state.started).toEqual([`${effect} 0`]);
    },
  );

  test("'fail' ends the run with the store's error when the bound is reached (checkpoint 21)", async () => {
    const { clock, state, host } = fragile([...steps(9), reply('end')], {
      // biome-ignore lint/suspicious/noThenProperty: the option is called so
      onSaveError: { maxUnsavedSteps: 3, then: 'fail' },
    });
    const run = host.run({ runId: 'r' });
    await clock.advance(1_000);
    expect(await run).toMatchObject({ status: 'error', error: { code: 'STORE_UNAVAILABLE' }, iterations: 4 });
    expect(state.started).toHaveLength(4);
  });

  test("'fail' does not wait for an intent that cannot be written (checkpoint 21)", async () => {
    const { clock, state, host } = fragile([callTool('once', { n: 0 }), reply('end')], {
      // biome-ignore lint/suspicious/noThenProperty: the option is called so
      onSaveError: { then: 'fail' },
    });
    const run = host.run({ runId: 'r' });
    await clock.advance(1_000);
    expect(await run).toMatchObject({ status: 'error', error: { code: 'STORE_UNAVAILABLE' } });
    expect(state.started).toEqual([]);
  });

  test('a run that waits for its store can be cancelled (checkpoint 21)', async () => {
    const { clock, host } = fragile([callTool('once', { n: 0 }), reply('end')]);
    const run = await host.start({ runId: 'r' });
    await clock.advance(1_000);
    const cancelled = run.cancel();
    await clock.advance(1_000);
    expect((await cancelled).status).toBe('cancelled');
    expect(clock.pending).toBe(0);
  });

  test('a record that is too large ends the run at once: trying again would not help (checkpoint 25)', async () => {
    const store = memoryStore();
    const checkpointer = createCheckpointerFactory(store, { maxRecordBytes: 3_000 });
    const large = toolOf('look', 'read', () => 'x'.repeat(5_000));
    const host = hostOf({ script: [...steps(3), reply('end')], tools: [large], ports: { checkpointer } });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'RECORD_TOO_LARGE' } });
    expect(result.error?.message).toMatch(/largest message/);
    expect(await store.load('r')).toBeNull();
  });

  test('save errors of a throttled flush are counted in the result and logged once (checkpoint 18, 21)', async () => {
    const clock = testClock();
    let isDown = false;
    const store = watchedStore(
      { before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')) },
      memoryStore({ clock }),
    );
    const checkpointer = createCheckpointerFactory(store, { throttleMs: 1_000, clock });
    const slow = gate();
    const host = hostOf({
      script: [...steps(2), () => slow.pass().then(() => reply('end'))],
      tools: [toolOf('look')],
      ports: { checkpointer },
      clock,
    });
    const run = host.run({ runId: 'r' });
    await slow.reached;
    isDown = true;
    await clock.advance(3_500);
    isDown = false;
    slow.open();
    expect(await run).toMatchObject({ status: 'ok', saveErrors: 3 });
    expect(host.warnings).toEqual([saved]);
  });
});
