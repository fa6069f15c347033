import { memoryStore, type Schedule } from 'pawl';
import { hang, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { agent, at, hostOf, MINUTE_MS, START } from './scene.ts';

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

describe('createExecutor refuses with a TypeError', () => {
  const start = () => ({ agent, invocation: { prompt: 'Go.' } });
  test.each<readonly [string, unknown, string]>([
    ['a list that is none', { id: 'a' }, 'schedules must be a list'],
    ['an unknown name', [{ id: 'a', every: '1h', start, cadence: 1 }], 'cadence'],
    ['a bad id', [{ id: 'a b', every: '1h', start }], 'id must have'],
    ['an id twice', [1, 2].map(() => ({ id: 'a', every: '1h', start })), 'two with the id "a"'],
    ['no start', [{ id: 'a', every: '1h' }], 'start must be a function'],
    ['neither cron nor every', [{ id: 'a', start }], 'either cron or every'],
    ['both', [{ id: 'a', cron: '* * * * *', every: '1h', start }], 'either cron or every'],
    ['a bad interval', [{ id: 'a', every: '1w', start }], 'every must be a time'],
    ['an interval of nothing', [{ id: 'a', every: '0s', start }], 'every must be a time'],
    ['an interval in a zone', [{ id: 'a', every: '1h', timeZone: 'UTC', start }], 'timeZone is of cron'],
    ['four fields', [{ id: 'a', cron: '* * * *', start }], 'five or six fields'],
    ['seven fields', [{ id: 'a', cron: '* * * * * * 2027', start }], 'five or six fields'],
    ['a nickname', [{ id: 'a', cron: '@daily', start }], 'five or six fields'],
    ['a bad expression', [{ id: 'a', cron: '61 * * * *', start }], 'minute'],
    ['a bad zone', [{ id: 'a', cron: '0 7 * * *', timeZone: 'Mars/Olympus', start }], 'Mars/Olympus'],
    ['a time that never comes', [{ id: 'a', cron: '0 0 31 2 *', start }], 'never comes'],
    ['a wrong word', [{ id: 'a', every: '1h', start, overlap: 'queue' }], 'overlap'],
    ['all missed ticks', [{ id: 'a', every: '1h', start, missed: 'all' }], 'missed'],
  ])('%s (schedules 1)', (_, schedules, message) => {
    expect(() => hostOf(undefined, { schedules: schedules as Schedule[] })).toThrow(TypeError);
    expect(() => hostOf(undefined, { schedules: schedules as Schedule[] })).toThrow(message);
  });

  test('schedules without a store, and on one that cannot admit their runs (schedules 1)', () => {
    const { schedules: _, ...four } = memoryStore();
    expect(() => hostOf([{ every: '1h' }], { store: four as never })).toThrow(
      /schedules need a store.*group schedules/,
    );
  });
});

describe('start', () => {
  test.each<readonly [string, Schedule['start'], string]>([
    ['throws', () => Promise.reject(new Error('no feed')), 'no feed'],
    ['returns nothing', () => undefined as never, 'must return'],
    ['names an agent that is none', () => ({ agent: {}, invocation: { prompt: 'Go.' } }) as never, 'agent is not'],
    ['gives the run an id', () => ({ agent, invocation: { prompt: 'Go.', runId: 'x' } }) as never, 'leave runId out'],
    ['has no prompt', () => ({ agent, invocation: { prompt: ' ' } }), 'prompt is empty'],
  ])('%s: that costs its tick, is said, and is not repeated (schedules 1)', async (_, start, message) => {
    let calls = 0;
    const failing: Schedule['start'] = (tick) => {
      calls += 1;
      return calls === 1 ? start(tick) : { agent, invocation: { prompt: 'Go.' } };
    };
    const { clock, executor, warned, ended } = hostOf([{ every: '1m', start: failing }]);
    await executor.recover();
    await clock.advance(95_000);
    expect([calls, ended]).toEqual([2, ['nightly@2026-11-28T07:00:00.000Z']]);
    const failed = { count: 1, lastAt: at('2026-11-28T06:59:00Z'), error: expect.stringContaining(message) };
    expect(await executor.schedules()).toMatchObject([{ failed, missed: { count: 0 } }]);
    expect(warned).toMatchObject([{ fields: { schedule: 'nightly', tick: '2026-11-28T06:59:00.000Z' } }]);
    await executor.shutdown();
  });

  test('that does not answer within portMs costs its tick (schedules 1)', async () => {
    const start = (tick: Date) =>
      tick.getTime() === at('2026-11-28T06:59:00Z')
        ? new Promise<never>(() => {})
        : { agent, invocation: { prompt: 'Go.' } };
    const { clock, executor, ended } = hostOf([{ every: '1m', start }], { defaults: { portMs: 10_000 } });
    await executor.recover();
    await clock.advance(95_000);
    expect(ended).toEqual(['nightly@2026-11-28T07:00:00.000Z']);
    expect(await executor.schedules()).toMatchObject([
      { failed: { count: 1, error: expect.stringContaining('10000 ms') } },
    ]);
    await executor.shutdown();
  });
});

describe('a tick', () => {
  test('of a downtime begins the newest one that was missed, once; with missed: skip none (schedules 3)', async () => {
    for (const missed of ['latest', 'skip'] as const) {
      const clock = testClock(START);
      const store = memoryStore({ clock });
      const first = hostOf([{ every: '1h', missed }], { clock, store });
      await first.executor.recover();
      await clock.advance(0);
      await first.executor.shutdown();
      await clock.advance(300 * MINUTE_MS);
      const next = hostOf([{ every: '1h', missed }], { clock, store });
      await next.executor.recover();
      await clock.advance(MINUTE_MS);
      expect(next.ended).toEqual(missed === 'latest' ? ['nightly@2026-11-28T11:00:00.000Z'] : []);
      const [listed] = await next.executor.schedules();
      expect(listed).toMatchObject({
        missed:
          missed === 'latest'
            ? { count: 4, lastAt: at('2026-11-28T10:00:00Z') }
            : { count: 5, lastAt: at('2026-11-28T11:00:00Z') },
        nextAt: at('2026-11-28T12:00:00Z'),
      });
      expect(next.warned[0]).toMatchObject({ fields: { event: 'schedule.missed', schedule: 'nightly', ticks: 4 } });
      await next.executor.shutdown();
    }
  });

  test('is not missed when it is 60 s late, and is when it is later (schedules 3)', async () => {
    for (const [late, count] of [
      [60_000, 0],
      [60_001, 1],
    ] as const) {
      const clock = testClock(START);
      const store = memoryStore({ clock });
      const first = hostOf([{ every: '1h', missed: 'skip' }], { clock, store });
      await first.executor.recover();
      await clock.advance(0);
      await first.executor.shutdown();
      await clock.advance(90_000 + late);
      const next = hostOf([{ every: '1h', missed: 'skip' }], { clock, store });
      await next.executor.recover();
      await clock.advance(0);
      expect(await next.executor.schedules()).toMatchObject([
        { missed: { count }, lastAt: at('2026-11-28T07:00:00Z') },
      ]);
      await next.executor.shutdown();
    }
  });

  test('that came before a store first saw its schedule begins no run (schedules 3)', async () => {
    const { clock, executor, ended } = hostOf([{ every: '1h' }], { clock: testClock(at('2026-11-28T07:00:10Z')) });
    await executor.recover();
    await clock.advance(10 * MINUTE_MS);
    expect(ended).toEqual([]);
    await executor.shutdown();
  });

  test('is settled once, also when the outcome of its run has expired (schedules 2)', async () => {
    const clock = testClock(START);
    const store = memoryStore({ clock });
    const options = { clock, store, retention: { outcomes: '1s', records: 0 } } as const;
    const first = hostOf([{ every: '1h' }], options);
    await first.executor.recover();
    await clock.advance(60 * MINUTE_MS);
    expect(first.ended).toEqual(['nightly@2026-11-28T07:00:00.000Z']);
    await first.executor.shutdown();
    expect(await store.outcomes.find('nightly@2026-11-28T07:00:00.000Z')).toBeNull();
    const next = hostOf([{ every: '1h' }], options);
    await next.executor.recover();
    await clock.advance(MINUTE_MS);
    expect(next.ended).toEqual([]);
    await next.executor.shutdown();
  });

  test('is settled within a minute when the clock of its host is set forward, and not again when it is set back (schedules 2, 3)', async () => {
    const { clock, executor, ended } = hostOf([{ every: '1h' }]);
    await executor.recover();
    await clock.advance(0);
    clock.wallJump(3 * 60 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(ended).toEqual(['nightly@2026-11-28T09:00:00.000Z']);
    clock.wallJump(-2 * 60 * MINUTE_MS);
    await clock.advance(119 * MINUTE_MS);
    expect(ended).toHaveLength(1);
    await clock.advance(61 * MINUTE_MS);
    expect(ended).toEqual(['nightly@2026-11-28T09:00:00.000Z', 'nightly@2026-11-28T10:00:00.000Z']);
    await executor.shutdown();
  });
});

test('between ticks nothing is written and nothing read, by the process that was first and by another one (schedules 7)', async () => {
  const clock = testClock(START);
  const inner = memoryStore({ clock });
  const asked: string[] = [];
  const { list, note } = inner.schedules;
  const store = {
    ...inner,
    schedules: {
      list: () => {
        asked.push('list');
        return list();
      },
      note: (...given: Parameters<typeof note>) => {
        asked.push('note');
        return note(...given);
      },
    },
  };
  const start: Schedule['start'] = async (tick) => ({ agent, invocation: { prompt: tick.toISOString() } });
  const hosts = [1, 2].map(() => hostOf([{ every: '6h', start }], { clock, store }));
  for (const { executor } of hosts) await executor.recover();
  await clock.advance(MINUTE_MS);
  expect(asked).toContain('note');
  asked.length = 0;
  await clock.advance(5 * 60 * MINUTE_MS - MINUTE_MS);
  expect(asked).toEqual([]);
  await clock.advance(2 * MINUTE_MS);
  expect(hosts.flatMap(({ ended }) => ended)).toEqual(['nightly@2026-11-28T12:00:00.000Z']);
  // One writes the tick; the other one finds it.
  expect(asked.filter((what) => what === 'note').length).toBeGreaterThanOrEqual(1);
  for (const { executor } of hosts) await executor.shutdown();
});
