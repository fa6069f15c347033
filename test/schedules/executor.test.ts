import { createExecutor, defineAgent, type ExecutorOptions, memoryStore, type Schedule } from 'pawl';
import { hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const START = Date.UTC(2026, 10, 28, 6, 58, 30);
const agent = defineAgent({ id: 'digest', instructions: 'Sum up.' });
const at = (text: string) => Date.parse(text);

/** An executor on a test clock, with what it said. */
function hostOf(schedules: readonly Partial<Schedule>[], options: Partial<ExecutorOptions> = {}) {
  const clock = (options.clock as ReturnType<typeof testClock> | undefined) ?? testClock(START);
  const store = options.store ?? memoryStore({ clock });
  const warned: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  const executor = createExecutor({
    models: { fast: scriptedModel(Array.from({ length: 50 }, () => reply('done'))) },
    agents: [agent],
    schedules: schedules.map((schedule) => ({
      id: 'nightly',
      start: (tick: Date) => ({ agent, invocation: { prompt: `Sum up ${tick.toISOString()}.` } }),
      ...schedule,
    })) as Schedule[],
    logger: { warn: (message, fields) => void warned.push({ message, fields }) },
    ...options,
    clock,
    store,
  });
  return { clock, store, executor, warned };
}

describe('a schedule', () => {
  test('begins the run of each tick under the id of the tick, with its label (schedules 1, 2)', async () => {
    const ended: string[] = [];
    const { clock, executor } = hostOf([{ every: '1m' }], {
      onOutcome: ({ runId, output }) => void ended.push(`${runId} ${output}`),
      retention: { records: '1d' },
    });
    await executor.recover();
    await clock.advance(95_000);
    expect(ended).toEqual(['nightly@2026-11-28T06:59:00.000Z done', 'nightly@2026-11-28T07:00:00.000Z done']);
    const [last] = await executor.history();
    expect(last).toMatchObject({
      labels: { schedule: 'nightly' },
      meta: { prompt: 'Sum up 2026-11-28T07:00:00.000Z.' },
    });
    expect(await executor.schedules()).toEqual([
      {
        id: 'nightly',
        every: '1m',
        lastAt: at('2026-11-28T07:00:00Z'),
        lastRunId: 'nightly@2026-11-28T07:00:00.000Z',
        nextAt: at('2026-11-28T07:01:00Z'),
        skipped: { count: 0 },
        missed: { count: 0 },
        failed: { count: 0 },
      },
    ]);
    await executor.shutdown();
  });

  test('is looked after by executors that take up due runs, and not by those that only start (schedules 2)', async () => {
    const { clock, executor, store } = hostOf([{ every: '1m' }]);
    await executor.run(agent, { runId: 'own', prompt: 'Go.' });
    await clock.advance(300_000);
    expect(await executor.schedules()).toMatchObject([{ id: 'nightly', nextAt: START + 300_000 + 30_000 }]);
    expect(await executor.schedules()).not.toMatchObject([{ lastAt: expect.anything() }]);
    const worker = executor.work();
    await clock.advance(60_000);
    expect(await store.load('x')).toBeNull();
    expect(await executor.schedules()).toMatchObject([{ lastRunId: 'nightly@2026-11-28T07:04:00.000Z' }]);
    await worker.drain();
    await clock.advance(600_000);
    expect(await executor.schedules()).toMatchObject([{ lastRunId: 'nightly@2026-11-28T07:04:00.000Z' }]);
    await executor.shutdown();
  });

  test('has one run a tick with three processes on one store, whose clocks differ by a second (schedules 2)', async () => {
    const clock = testClock(START);
    const store = memoryStore({ clock });
    const ended: string[] = [];
    const onOutcome = ({ runId }: { readonly runId: string }) => void ended.push(runId);
    const hosts = [-1_000, 0, 1_000].map((off) =>
      hostOf([{ every: '1m' }], { clock: { ...clock, now: () => clock.now() + off } as never, store, onOutcome }),
    );
    await Promise.all(hosts.map(({ executor }) => executor.recover()));
    await clock.advance(10 * 60_000);
    expect(new Set(ended).size).toBe(10);
    expect(ended).toHaveLength(10);
    for (const { executor } of hosts) await executor.shutdown();
  });
});

describe('a run that has not ended', () => {
  test('makes the next tick skipped, which is said; with overlap: allow it does not (schedules 4)', async () => {
    for (const overlap of [undefined, 'allow'] as const) {
      const { clock, executor, warned } = hostOf([{ every: '1m', ...(overlap ? { overlap } : {}) }], {
        models: { fast: scriptedModel([hang(), hang(), hang()]) },
      });
      await executor.recover();
      await clock.advance(95_000);
      const skipped = { count: 1, lastAt: at('2026-11-28T07:00:00Z') };
      expect(await executor.schedules()).toMatchObject([
        overlap ? { lastRunId: 'nightly@2026-11-28T07:00:00.000Z', skipped: { count: 0 } } : { skipped },
      ]);
      expect(warned.some(({ message }) => message.includes('an earlier tick has not ended'))).toBe(!overlap);
      await executor.shutdown();
    }
  });
});
