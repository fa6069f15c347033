import { type Driven, type DriveOptions, defineAgent, memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { type HostOptions, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { onClock, sleepOn } from '../../fixtures/on-clock.ts';
import { plainStore, withoutMarks } from '../../fixtures/watched-store.ts';

const later = { drive: 'later' } as const;
const START = 1_000_000;

/** Runs that are admitted, in this order, and a host that drives what is due. */
async function world({
  runs = 0,
  withMethods = (store: object) => store,
  ...options
}: HostOptions & {
  readonly runs?: number;
  readonly withMethods?: (store: object) => object;
} = {}) {
  const clock = testClock(START);
  const store = memoryStore({ clock });
  const ended: string[] = [];
  const used = withMethods(store) as typeof store;
  const common = {
    clock,
    store: used,
    random: () => 0.5,
    onOutcome: ({ runId }: { runId: string }) => void ended.push(runId),
  };
  const script: ScriptedEntry[] = Array.from({ length: 50 }, () => async () => {
    await sleepOn(clock, 100);
    return reply('done');
  });
  const host = (more: HostOptions = {}) => hostOf({ ...common, script, ...more });
  const first = host(options);
  for (let i = 0; i < runs; i++) await first.start({ runId: `r${i}` }, later);
  const drive = (limits: DriveOptions, executor = first.executor): Promise<Driven> =>
    onClock(clock, executor.drive('due', limits));
  return { ...first, clock, store, ended, host, drive, common };
}

describe("drive('due')", () => {
  test('works on due runs one after another until its budget is over, and says that others are due (engine 10)', async () => {
    const { drive, ended, model } = await world({ runs: 5 });
    const { state, runs = 0 } = await drive({ budgetMs: 250, graceMs: 60_000 });
    expect(state).toBe('more');
    // A busy machine may let the clock of the test move between two runs.
    expect([2, 3]).toContain(runs);
    expect(ended).toHaveLength(runs);
    expect(await drive({ budgetMs: 10_000 })).toMatchObject({ state: 'ended', runs: 5 - runs });
    expect(ended.toSorted()).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
    expect(model.calls).toHaveLength(5);
    expect(await drive({ budgetMs: 10_000 })).toEqual({ state: 'ended', boundaries: 0, runs: 0 });
  });

  test('begins a run with any budget, and leaves it due when that is over (engine 2, 10)', async () => {
    const script = [callTool('look'), reply('found')];
    const { drive, store: inner, model } = await world({ runs: 1, script, agent: { tools: [toolOf('look')] } });
    expect(await drive({ budgetMs: 0 })).toMatchObject({ state: 'more', runs: 1 });
    expect(model.calls).toHaveLength(1);
    expect((await inner.due.list({ limit: 10 })).runs).toMatchObject([{ runId: 'r0', attempts: 0 }]);
    expect(await drive({ budgetMs: 0 })).toMatchObject({ state: 'more', runs: 1 });
    expect(await drive({ budgetMs: 0 })).toMatchObject({ state: 'ended', runs: 1 });
    expect(model.calls).toHaveLength(2);
  });

  test('says when the next run is due (engine 10)', async () => {
    const tools = [toolOf('nap', 'read', (__, context) => context.sleep(60_000))];
    const script = [callTool('nap'), reply('rested')];
    const { drive, clock, model } = await world({ runs: 1, script, agent: { tools } });
    const driven = await drive({ budgetMs: 30_000 });
    expect(driven).toMatchObject({ state: 'waiting', runs: 1 });
    expect(driven.wakeAt).toBeGreaterThan(START + 50_000);
    await clock.advance((driven.wakeAt ?? 0) - clock.now() + 5_000);
    // The run is the queue's: this executor takes up nothing by itself.
    expect(model.calls).toHaveLength(1);
    expect(await drive({ budgetMs: 30_000 })).toMatchObject({ state: 'ended', runs: 1 });
  });

  test('gives a run back that this process cannot continue, with a pause and without an attempt (engine 8, 10)', async () => {
    const { host, common, clock, store: inner, drive } = await world();
    const other = defineAgent({ id: 'other', instructions: 'Work.' });
    const palette = { resolve: () => null } as never;
    await hostOf({ ...common, agents: [other] }).executor.start(other, { runId: 'o', prompt: 'Go.' }, later);
    await host().start({ runId: 'r' }, later);
    // A palette may find any agent, so the store offers all runs.
    const { executor } = host({ ports: { palette } });
    const driven = await drive({ budgetMs: 10_000 }, executor);
    expect(driven.runs).toBe(1);
    expect(await inner.load('r')).toBeNull();
    expect(await drive({ budgetMs: 10_000 }, executor)).toMatchObject({ runs: 0 });
    await clock.advance(30_000);
    expect((await inner.due.list({ limit: 10 })).runs).toMatchObject([{ runId: 'o', attempts: 0 }]);
    const healthy = hostOf({ ...common, agents: [other] }).executor;
    expect(await drive({ budgetMs: 10_000 }, healthy)).toMatchObject({ state: 'ended', runs: 1 });
  });

  test('takes a run whose outcome the host refused again only after a pause, without marks (engine 6, 10)', async () => {
    const unmarked = (inner: object) => withoutMarks(inner as ReturnType<typeof memoryStore>);
    let isRefused = true;
    const delivered: string[] = [];
    const onOutcome = async ({ runId }: { runId: string }) => {
      if (isRefused) throw new Error('not now');
      delivered.push(runId);
    };
    const { drive, clock, model } = await world({ runs: 1, withMethods: unmarked, onOutcome });
    expect(await drive({ budgetMs: 5_000 })).toMatchObject({ state: 'waiting' });
    isRefused = false;
    await clock.advance(30_000);
    expect(await drive({ budgetMs: 5_000 })).toMatchObject({ state: 'ended' });
    expect(delivered).toEqual(['r0']);
    expect(model.calls).toHaveLength(1);
  });

  test('shares due runs with another process: each is worked on once (engine 7, 10)', async () => {
    const { drive, host, ended, model } = await world({ runs: 6 });
    const other = host();
    const both = await Promise.all([drive({ budgetMs: 60_000 }), drive({ budgetMs: 60_000 }, other.executor)]);
    expect(both.reduce((sum, { runs = 0 }) => sum + runs, 0)).toBe(6);
    expect(ended).toHaveLength(6);
    expect(model.calls.length + other.model.calls.length).toBe(6);
  });
});

describe("drive('due')", () => {
  test('is joined by a second call in the same executor (engine 7, 10)', async () => {
    const { executor, clock, ended } = await world({ runs: 2 });
    const calls = [executor.drive('due'), executor.drive('due')];
    const [first, second] = await onClock(clock, Promise.all(calls));
    expect(second).toBe(first);
    expect(ended).toHaveLength(2);
  });

  test('ends at once for an aborted signal and at a shutdown, and leaves the rest due (engine 4, 10)', async () => {
    const { executor, clock, store } = await world({ runs: 3 });
    expect(await executor.drive('due', { signal: AbortSignal.abort() })).toEqual({
      state: 'more',
      boundaries: 0,
      runs: 0,
    });
    const leaving = new AbortController();
    const driving = executor.drive('due', { signal: leaving.signal });
    await settle();
    leaving.abort();
    expect(await onClock(clock, driving)).toMatchObject({ state: 'more', runs: 1 });
    await onClock(clock, executor.shutdown());
    expect(await executor.drive('due')).toMatchObject({ state: 'more', runs: 0 });
    expect((await store.due.list({ limit: 10 })).runs).toHaveLength(2);
  });

  test('takes a run whose id is due, which cannot be driven by its id (engine 10)', async () => {
    const { start, drive, ended } = await world();
    await start({ runId: 'due' }, later);
    expect(await drive({})).toMatchObject({ state: 'ended', runs: 1 });
    expect(ended).toEqual(['due']);
  });

  test('rejects without a store, and with one in which no runs rest (engine 9, 10)', async () => {
    const { host } = await world();
    await expect(host({ store: undefined as never }).executor.drive('due')).rejects.toMatchObject({
      code: 'NOT_DURABLE',
    });
    await expect(host({ store: plainStore() as never }).executor.drive('due')).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    });
  });

  test('rejects while the store is away, and loses nothing (engine 9, 10)', async () => {
    let isAway = true;
    const going = (store: object) =>
      wrapStore(store, (name, call) => async (...args) => {
        if (name === 'due.take' && isAway) throw new Error('away');
        return call(...args);
      });
    const { drive, store } = await world({ runs: 2, withMethods: going });
    await expect(drive({})).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect((await store.due.list({ limit: 10 })).runs).toMatchObject([{ attempts: 0 }, { attempts: 0 }]);
    isAway = false;
    expect(await drive({})).toMatchObject({ state: 'ended', runs: 2 });
  });

  test('asks a store a few times only that says it has due runs and gives none (engine 10)', async () => {
    let asked = 0;
    const lying = (store: object) =>
      wrapStore(store, (name, call) => async (...args) => {
        if (name !== 'due.take') return call(...args);
        asked += 1;
        return { now: START, claims: [], nextAt: START };
      });
    const { drive } = await world({ withMethods: lying });
    expect(await drive({})).toEqual({ state: 'more', boundaries: 0, runs: 0 });
    expect(asked).toBeLessThan(10);
  });
});
