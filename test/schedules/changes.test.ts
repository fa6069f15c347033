import { defineAgent, defineTool, defineWorkflow, memoryStore } from 'pawl';
import { callTool, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createMachine } from 'xstate';
import { at, hostOf, MINUTE_MS, START } from './scene.ts';

/** A store that several executors share, on one clock. */
function shared() {
  const clock = testClock(START);
  return { clock, store: memoryStore({ clock }) };
}

const idOf = (time: string) => `nightly@2026-11-28T${time}:00.000Z`;

describe('a schedule that is paused', () => {
  test('begins no run in any process until it is resumed, and its ticks are never made up (schedules 5)', async () => {
    const { clock, store } = shared();
    const worker = hostOf([{ every: '1m' }], { clock, store });
    const desk = hostOf(undefined, { clock, store });
    await worker.executor.recover();
    await clock.advance(MINUTE_MS);
    await desk.executor.schedules.pause('nightly', { by: { id: 'ada', name: 'Ada' } });
    const paused = { by: { id: 'ada', name: 'Ada' }, at: START + MINUTE_MS };
    await clock.advance(10 * MINUTE_MS);
    expect(worker.ended).toEqual([idOf('06:59')]);
    const [listed] = await worker.executor.schedules();
    expect(listed).toMatchObject({ id: 'nightly', paused, missed: { count: 0 } });
    expect(listed).not.toHaveProperty('nextAt');
    await desk.executor.schedules.pause('nightly', { by: { id: 'eve' } });
    expect(await desk.executor.schedules()).toMatchObject([{ paused }]);
    await desk.executor.schedules.resume('nightly', { by: { id: 'eve' } });
    const [resumed] = await desk.executor.schedules();
    expect(resumed).toMatchObject({ nextAt: at('2026-11-28T07:10:00Z') });
    expect(resumed).not.toHaveProperty('paused');
    await clock.advance(MINUTE_MS);
    expect(worker.ended).toEqual([idOf('06:59'), idOf('07:10')]);
    expect(await desk.executor.schedules()).toMatchObject([{ missed: { count: 0 } }]);
    for (const { executor } of [worker, desk]) await executor.shutdown();
  });

  test('can be so before a process has looked after it, and a resumed one that was not paused is as it was (schedules 5)', async () => {
    const { clock, executor, ended } = hostOf([{ every: '1m' }]);
    await executor.schedules.resume('nightly');
    await executor.schedules.pause('nightly');
    await executor.recover();
    await clock.advance(5 * MINUTE_MS);
    expect([ended, (await executor.schedules())[0]?.paused]).toEqual([[], { at: START }]);
    await executor.shutdown();
  });

  test('is refused by name when it is unknown, and with a person that is none (schedules 5)', async () => {
    const { executor, store } = hostOf([{ every: '1m' }]);
    await expect(executor.schedules.pause('weekly')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
    await expect(executor.schedules.resume('weekly')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
    await expect(executor.schedules.pause('nightly', { by: 'ada' as never })).rejects.toThrow(
      'by must be { id, name? }',
    );
    await expect(executor.schedules.pause('nightly', { reason: 'x' } as never)).rejects.toThrow(TypeError);
    const { schedules: _, ...rest } = store;
    await expect(hostOf(undefined, { store: rest as never }).executor.schedules()).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    });
    await executor.shutdown();
  });
});

describe('the run of an earlier tick', () => {
  test('that waits has not ended, and one that is parked has (schedules 4)', async () => {
    const input = { type: 'object' } as const;
    const asks = defineTool({ name: 'send', description: 'Sends.', input, needsApproval: true, execute: () => 'sent' });
    const asking = defineAgent({ id: 'digest', instructions: 'Sum up.', tools: [asks] });
    const start = () => ({ agent: asking, invocation: { prompt: 'Go.' } });
    const script = [callTool('send'), reply('done'), reply('done')];
    const { clock, executor } = hostOf([{ every: '1m', start }], {
      models: { fast: scriptedModel(script) },
      agents: [asking],
      defaults: { waitLingerMs: 1 },
    });
    await executor.recover();
    await clock.advance(95_000);
    expect(await executor.schedules()).toMatchObject([{ lastRunId: idOf('06:59'), skipped: { count: 1 } }]);
    await executor.park(idOf('06:59'), 'a person looks');
    await clock.advance(MINUTE_MS);
    expect(await executor.schedules()).toMatchObject([{ lastRunId: idOf('07:01'), skipped: { count: 1 } }]);
    await executor.shutdown();
  });
});

describe('a schedule that changes', () => {
  test('has its new ticks from the next one on, and the past is not made up (schedules 6)', async () => {
    const { clock, store } = shared();
    const before = hostOf([{ every: '1h' }], { clock, store });
    await before.executor.recover();
    await clock.advance(2 * MINUTE_MS);
    await before.executor.shutdown();
    await clock.advance(120 * MINUTE_MS);
    const after = hostOf([{ every: '20m' }], { clock, store });
    await after.executor.recover();
    await clock.advance(MINUTE_MS);
    expect(await after.executor.schedules()).toMatchObject([
      { every: '20m', lastRunId: idOf('07:00'), missed: { count: 0 }, nextAt: at('2026-11-28T09:20:00Z') },
    ]);
    await clock.advance(20 * MINUTE_MS);
    expect([before.ended, after.ended]).toEqual([[idOf('07:00')], [idOf('09:20')]]);
    await after.executor.shutdown();
  });

  test('is that of the higher deployment: a process with a lower one starts nothing for it (schedules 6)', async () => {
    const { clock, store } = shared();
    const old = hostOf([{ every: '1m' }], { clock, store, deployment: 4 });
    await old.executor.recover();
    await clock.advance(MINUTE_MS);
    const next = hostOf([{ every: '5m' }], { clock, store, deployment: 5 });
    await next.executor.recover();
    await clock.advance(10 * MINUTE_MS);
    expect(old.ended).toEqual([idOf('06:59')]);
    expect(next.ended).toEqual([idOf('07:00'), idOf('07:05')]);
    await next.executor.shutdown();
    const again = hostOf([{ every: '1m' }], { clock, store, deployment: 4 });
    await again.executor.recover();
    await clock.advance(10 * MINUTE_MS);
    expect([old.ended, again.ended]).toEqual([[idOf('06:59')], []]);
    for (const { executor } of [old, again]) await executor.shutdown();
  });

  test('is that of the higher deployment also when nothing else differs (schedules 6)', async () => {
    const { clock, store } = shared();
    const old = hostOf([{ every: '1m' }], { clock, store, deployment: 4 });
    await old.executor.recover();
    await clock.advance(MINUTE_MS);
    const next = hostOf([{ every: '1m' }], { clock, store, deployment: 5 });
    await next.executor.recover();
    await clock.advance(0);
    await next.executor.shutdown();
    await clock.advance(5 * MINUTE_MS);
    expect([old.ended, next.ended]).toEqual([[idOf('06:59')], []]);
    await old.executor.shutdown();
  });

  test('without numbers is that of the process that began last (schedules 6)', async () => {
    const { clock, store } = shared();
    const old = hostOf([{ every: '1m' }], { clock, store });
    await old.executor.recover();
    await clock.advance(MINUTE_MS);
    const next = hostOf([{ every: '5m' }], { clock, store });
    await next.executor.recover();
    await clock.advance(9 * MINUTE_MS);
    expect([old.ended, next.ended]).toEqual([[idOf('06:59')], [idOf('07:00'), idOf('07:05')]]);
    await next.executor.shutdown();
    await old.executor.shutdown();
  });

  test('and is switched off has no ticks; those until it is on again are not made up (schedules 1)', async () => {
    const { clock, store } = shared();
    for (const [enabled, ended] of [
      [true, [idOf('06:59')]],
      [false, []],
      [true, [idOf('07:01')]],
    ] as const) {
      const host = hostOf([{ every: '1m', enabled }], { clock, store });
      await host.executor.recover();
      await clock.advance(MINUTE_MS);
      expect([enabled, host.ended]).toEqual([enabled, ended]);
      expect((await host.executor.schedules())[0]?.disabled).toBe(enabled ? undefined : true);
      await host.executor.shutdown();
    }
  });
});

describe('a schedule that is defined no more', () => {
  test('by a higher deployment is gone, and starts nothing, also by a process that still has it (schedules 5, 6)', async () => {
    const { clock, store } = shared();
    const old = hostOf([{ every: '1m' }], { clock, store, deployment: 4 });
    await old.executor.recover();
    await clock.advance(MINUTE_MS);
    const next = hostOf([], { clock, store, deployment: 5 });
    await next.executor.recover();
    await clock.advance(5 * MINUTE_MS);
    expect(old.ended).toEqual([idOf('06:59')]);
    const [listed] = await old.executor.schedules();
    expect(listed).toMatchObject({ id: 'nightly', gone: true, lastRunId: idOf('06:59') });
    expect(listed).not.toHaveProperty('nextAt');
    const back = hostOf([{ every: '1m' }], { clock, store, deployment: 6 });
    await back.executor.recover();
    await clock.advance(MINUTE_MS);
    expect(back.ended).toEqual([idOf('07:05')]);
    expect(await back.executor.schedules()).toMatchObject([{ missed: { count: 0 } }]);
    for (const { executor } of [old, next, back]) await executor.shutdown();
  });

  test('by a lower deployment, by the same one, or by one without a number is not gone, and its number stays (schedules 5, 6)', async () => {
    const { clock, store } = shared();
    const own = hostOf([{ every: '1m' }], { clock, store, deployment: 5 });
    await own.executor.recover();
    await clock.advance(MINUTE_MS);
    for (const numbered of [{ deployment: 4 }, { deployment: 5 }, {}]) {
      const other = hostOf([], { clock, store, ...numbered });
      await other.executor.recover();
      await clock.advance(MINUTE_MS);
      await other.executor.shutdown();
    }
    expect((await own.executor.schedules())[0]).not.toHaveProperty('gone');
    expect(own.ended).toHaveLength(4);
    await own.executor.shutdown();
    // One without a number takes the schedule over, and the deployment before it still starts nothing.
    const plain = hostOf([{ every: '5m' }], { clock, store });
    await plain.executor.recover();
    await clock.advance(5 * MINUTE_MS);
    expect(plain.ended).toHaveLength(1);
    await plain.executor.shutdown();
    const lower = hostOf([{ every: '1m' }], { clock, store, deployment: 4 });
    await lower.executor.recover();
    await clock.advance(5 * MINUTE_MS);
    expect(lower.ended).toEqual([]);
    await lower.executor.shutdown();
  });

  test('without numbers is gone when its tick has been due for ten minutes (schedules 5)', async () => {
    const { clock, store } = shared();
    const old = hostOf([{ every: '1m' }], { clock, store });
    await old.executor.recover();
    await clock.advance(MINUTE_MS);
    await old.executor.shutdown();
    const desk = hostOf(undefined, { clock, store });
    await clock.advance(10 * MINUTE_MS);
    expect((await desk.executor.schedules())[0]?.gone).toBeUndefined();
    await clock.advance(MINUTE_MS);
    expect((await desk.executor.schedules())[0]?.gone).toBe(true);
    await desk.executor.shutdown();
  });
});

test('a schedule of a workflow begins its runs with an input (schedules 1)', async () => {
  const machine = createMachine({
    id: 'report',
    initial: 'done',
    context: ({ input }: { input: object }) => input,
    output: ({ context }: { context: object }) => context,
    states: { done: { type: 'final' } },
  } as never);
  const workflow = defineWorkflow({ id: 'report', version: '1', machine });
  const outputs: unknown[] = [];
  const { clock, executor } = hostOf(
    [{ every: '1m', start: (tick) => ({ workflow, input: { day: tick.toISOString().slice(0, 10) } }) }],
    { workflows: [workflow], onOutcome: ({ data }) => void outputs.push(data) },
  );
  await executor.recover();
  await clock.advance(MINUTE_MS);
  expect(outputs).toEqual([{ day: '2026-11-28' }]);
  await executor.shutdown();
});

test('a schedule whose row is damaged is defined again, and has its ticks from then on (schedules 5)', async () => {
  const { clock, store } = shared();
  let isDamaged = true;
  const none = { count: 0 };
  const damaged = { isEnabled: false, definedAt: 0, since: 0, skipped: none, missed: none, failed: none };
  const reading = {
    ...store,
    schedules: {
      list: async () =>
        (await store.schedules.list()).map((row) =>
          isDamaged ? { id: row.id, revision: row.revision, ...damaged } : row,
        ),
      note: (...given: Parameters<typeof store.schedules.note>) => {
        isDamaged = false;
        return store.schedules.note(...given);
      },
    },
  };
  const first = hostOf([{ every: '1m' }], { clock, store });
  await first.executor.recover();
  await clock.advance(MINUTE_MS);
  await first.executor.shutdown();
  const next = hostOf([{ every: '1m' }], { clock, store: reading });
  await next.executor.recover();
  await clock.advance(MINUTE_MS);
  expect(next.ended).toEqual([idOf('07:00')]);
  await next.executor.shutdown();
});

test('a store that does not answer delays a tick, and is said once (schedules 7)', async () => {
  const { clock, store } = shared();
  let isAway = false;
  const failing = {
    ...store,
    schedules: {
      ...store.schedules,
      note: (...given: Parameters<typeof store.schedules.note>) =>
        isAway ? Promise.reject(new Error('away')) : store.schedules.note(...given),
    },
  };
  const { executor, ended, warned } = hostOf([{ every: '1m' }], { clock, store: failing });
  await executor.recover();
  await clock.advance(0);
  isAway = true;
  await clock.advance(50_000);
  isAway = false;
  await clock.advance(6_000);
  expect(ended).toEqual([idOf('06:59')]);
  expect(warned.map(({ message }) => message)).toEqual(['schedule: the store does not answer']);
  await executor.shutdown();
});
