import { type CheckpointStore, createAudit, type Driven, memoryStore } from 'pawl';
import { callTool, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, type HostOptions, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { onClock } from '../../fixtures/on-clock.ts';
import { slicedWorld } from '../../fixtures/sliced-runs.ts';
import { withoutMarks } from '../../fixtures/watched-store.ts';

const later = { drive: 'later' } as const;
const START = 1_000_000;
const MINUTE = 60_000;

/** Hosts of one store, and an admitted run `r`. */
async function admitted(options: HostOptions = {}, storeOf = (inner: ReturnType<typeof memoryStore>) => inner) {
  const clock = testClock(START);
  const store = storeOf(memoryStore({ clock }));
  const common = { clock, store, random: () => 0.5, ...options };
  const host = (more: HostOptions = {}) => hostOf({ ...common, ...more });
  const first = host();
  await first.start({ runId: 'r' }, later);
  return { ...first, clock, store, host };
}

/** The waits of a driven run that this process cannot continue, one after the other. */
async function pausesOf(drive: () => Promise<Driven>, clock: ReturnType<typeof testClock>, times: number) {
  const pauses: number[] = [];
  for (let i = 0; i < times; i++) {
    const { wakeAt = Number.NaN } = await drive();
    pauses.push((wakeAt - clock.now()) / 1_000);
  }
  return pauses;
}

describe('drive answers', () => {
  test('ended, with the code of the error that ended the run, now or before (engine 6)', async () => {
    const { executor } = await admitted({ script: [fail({ statusCode: 400, message: 'no' })] });
    const driven = await executor.drive('r');
    expect(driven).toMatchObject({ runId: 'r', state: 'ended', code: expect.stringMatching(/^[A-Z_]+$/) });
    expect(await executor.drive('r')).toEqual({ runId: 'r', state: 'ended', code: driven.code, boundaries: 0 });
    expect(await executor.drive('never')).toEqual({
      ...{ runId: 'never', state: 'ended', code: 'RUN_NOT_FOUND', boundaries: 0 },
    });
  });

  test('waiting until a time, or without one for a run that only an answer or a person helps (engine 6)', async () => {
    const nap = toolOf('nap', 'read', (_, context) => context.sleep(MINUTE));
    const timed = await admitted({ script: [callTool('nap'), reply('rested')], agent: { tools: [nap] } });
    const first = await onClock(timed.clock, timed.executor.drive('r'));
    const wakeAt = (await timed.store.load('r'))?.waiting?.wakeAt;
    const rests = { state: 'waiting', wakeAt };
    expect(wakeAt).toBeGreaterThanOrEqual(START + MINUTE);
    expect(first).toMatchObject(rests);
    // It tries at once, and finds that nothing has changed.
    expect(await timed.executor.drive('r')).toMatchObject(rests);
    expect(timed.model.calls).toHaveLength(1);
    const ask = toolOf('ask', 'read', (_, context) => context.waitFor('paid'));
    const asked = await admitted({ script: [callTool('ask'), reply('paid')], agent: { tools: [ask] } });
    const driven = await onClock(asked.clock, asked.executor.drive('r'));
    expect(driven).toMatchObject({ state: 'waiting' });
    expect(driven.wakeAt).toBeUndefined();
    await asked.executor.signal('paid', 7, { id: 's' });
    expect(await onClock(asked.clock, asked.executor.drive('r'))).toMatchObject({ state: 'ended' });
    const parked = await admitted();
    await parked.executor.park('r', 'why not');
    expect(await parked.executor.drive('r')).toEqual({
      runId: 'r',
      state: 'waiting',
      code: 'RUN_PARKED',
      boundaries: 0,
    });
  });

  test('waiting while the host refuses the outcome, on a store without marks, and delivers the same one later, once (engine 6)', async () => {
    const ids: string[] = [];
    let isRefused = true;
    const onOutcome = async ({ outcomeId }: { outcomeId: string }) => {
      ids.push(outcomeId);
      if (isRefused) throw new Error('not now');
    };
    const { executor, host, clock, model, store } = await admitted({ onOutcome }, withoutMarks);
    const driven = await onClock(clock, executor.drive('r'));
    expect(driven).toMatchObject({ state: 'waiting', code: 'UNDELIVERED' });
    expect(driven.wakeAt).toBeGreaterThanOrEqual(START + 30_000);
    expect(driven.wakeAt).toBeLessThanOrEqual(clock.now() + 30_000);
    isRefused = false;
    expect(await onClock(clock, host().executor.drive('r'))).toMatchObject({ state: 'ended' });
    expect(await executor.drive('r')).toMatchObject({ state: 'ended', boundaries: 0 });
    expect(new Set(ids).size).toBe(1);
    expect(ids).toHaveLength(2);
    expect(model.calls).toHaveLength(1);
    expect(await store.load('r')).toBeNull();
  });

  test('ended although the host refuses the outcome, which is delivered later, once (engine 6, edges 16)', async () => {
    const heard: string[] = [];
    let isRefused = true;
    const onOutcome = async ({ outcomeId }: { outcomeId: string }) => {
      if (isRefused) throw new Error('not now');
      heard.push(outcomeId);
    };
    const { executor, clock, store } = await admitted({ onOutcome });
    expect(await onClock(clock, executor.drive('r'))).toMatchObject({ state: 'ended' });
    expect(await store.load('r')).toBeNull();
    isRefused = false;
    await clock.advance(60_000);
    expect(heard).toHaveLength(1);
    await clock.advance(3_600_000);
    expect(heard).toHaveLength(1);
  });
});

describe('drive of a run that another process has', () => {
  test('says until when, counts nothing, and continues it when that process is gone (engine 7)', async () => {
    const { host, clock, store, executor } = await admitted();
    const owner = host({ script: [hang()] });
    void owner.executor.drive('r', { budgetMs: 10 * MINUTE });
    await settle();
    const lease = { state: 'owned-elsewhere', wakeAt: START + 30_000, boundaries: 0 };
    for (let i = 0; i < 5; i++) expect(await executor.drive('r')).toEqual({ runId: 'r', ...lease });
    await onClock(clock, owner.executor.shutdown());
    expect((await store.due.list({ limit: 1 })).runs).toMatchObject([{ runId: 'r', attempts: 0 }]);
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
  });

  test('in the same executor joins its slice (engine 7, 38)', async () => {
    const working = gate<ReturnType<typeof reply>>();
    const { executor, model } = await admitted({ script: [() => working.pass()] });
    const first = executor.drive('r');
    await working.reached;
    const second = executor.drive('r', { budgetMs: 1 });
    working.open(reply('done'));
    expect(await second).toBe(await first);
    expect(await first).toMatchObject({ state: 'ended' });
    expect(model.calls).toHaveLength(1);
  });
});

describe('drive of a run that this process cannot continue', () => {
  test('waits 30 s, doubled up to 10 min, and counts no attempt: without its agent (engine 8)', async () => {
    const { host, clock, store, executor } = await admitted();
    const other = host({ agents: [] }).executor;
    expect(await other.drive('r')).toMatchObject({ state: 'waiting', code: 'AGENT_NOT_FOUND', boundaries: 0 });
    expect(await pausesOf(() => other.drive('r'), clock, 6)).toEqual([60, 120, 240, 480, 600, 600]);
    expect((await store.due.list({ limit: 1 })).runs).toMatchObject([{ runId: 'r', attempts: 0 }]);
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
  });

  test('waits so for a record of a newer version, and for one that it has no key for (engine 8)', async () => {
    const { host, clock, store, executor } = await admitted();
    const reading = (load: CheckpointStore['load']) => host({ store: { ...store, load } }).executor;
    const newer = reading(async (runId, options) => {
      const record = await store.load(runId, options);
      return record && { ...record, version: 99 as never };
    });
    expect(await newer.drive('r')).toMatchObject({ state: 'waiting', code: 'CHECKPOINT_TOO_NEW' });
    expect(await pausesOf(() => newer.drive('r'), clock, 2)).toEqual([60, 120]);
    const keyless = reading(async () =>
      Promise.reject(Object.assign(new Error('another key'), { code: 'KEY_MISMATCH' })),
    );
    expect(await keyless.drive('r')).toMatchObject({ state: 'waiting', code: 'KEY_MISMATCH', wakeAt: START + 30_000 });
    const damaged = reading(async () =>
      Promise.reject(Object.assign(new Error('bytes'), { code: 'CHECKPOINT_CORRUPT' })),
    );
    const broken = await damaged.drive('r');
    expect(broken).toMatchObject({ state: 'waiting', code: 'CHECKPOINT_CORRUPT' });
    expect(broken.wakeAt).toBeUndefined();
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
  });

  test('waits so for a record set aside for its definition, which the agent as it was continues (engine 8)', async () => {
    const phases = [
      { name: 'a', instructions: 'A.' },
      { name: 'b', instructions: 'B.' },
    ];
    const clock = testClock(START);
    const common = { clock, store: memoryStore({ clock }), isForeign: true };
    const before = hostOf({ ...common, agent: { phases }, script: [reply('one'), reply('two')] });
    await before.start({ runId: 'r' }, later);
    expect(await before.executor.drive('r', { budgetMs: 0 })).toMatchObject({ state: 'more' });
    const changed = hostOf({ ...common, agent: { phases: [...phases].reverse() } });
    for (const wakeAt of [START + 30_000, START + MINUTE])
      expect(await changed.executor.drive('r')).toMatchObject({ state: 'waiting', code: 'DEFINITION_CHANGED', wakeAt });
    expect(await common.store.load('r')).toMatchObject({ attempts: 0 });
    expect(await before.executor.drive('r')).toMatchObject({ state: 'ended' });
    expect(before.model.calls).toHaveLength(2);
  });

  test('does not wait for a run of a machine of the host: only that continues it (engine 8)', async () => {
    const { host, store } = await admitted();
    const hosted: CheckpointStore['load'] = async (runId, options) => {
      const record = await store.load(runId, options);
      return record && { ...record, hosted: true };
    };
    const { executor } = host({ store: { ...store, load: hosted } });
    expect(await executor.drive('r')).toEqual({
      ...{ runId: 'r', state: 'waiting', code: 'RUN_OWNED_ELSEWHERE', boundaries: 0 },
    });
  });
});

describe('drive rejects', () => {
  test('for a wrong call, and if the store did not answer; anything else is an answer (engine 9)', async () => {
    const { host, executor, store } = await admitted();
    await expect(executor.drive('')).rejects.toMatchObject({ code: 'INVALID_RUN_ID' });
    await expect(executor.drive('r', { budgetMs: -1 })).rejects.toThrow(TypeError);
    await expect(executor.drive('r', { budget: 1 } as never)).rejects.toThrow(TypeError);
    await expect(executor.drive('r', { signal: {} } as never)).rejects.toThrow('drive: signal');
    await expect(host({ store: undefined as never }).executor.drive('r')).rejects.toMatchObject({
      code: 'NOT_DURABLE',
    });
    const away = async () => Promise.reject(new Error('away'));
    for (const name of ['load', 'claim'] as const) {
      const gone = host({ store: { ...store, [name]: away } }).executor;
      await expect(gone.drive('r')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    }
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
  });
});

describe('the account of a run over slices', () => {
  test('its budget is checked once and counts each turn once; its audit has one row (engine 11)', async () => {
    const clock = testClock(START);
    const world = slicedWorld({ clock });
    const options = { ports: { budget: world.budget }, audit: true };
    await world.host(options).start({ runId: 'r' }, later);
    let slices = 0;
    for (let state: Driven['state'] = 'more'; state === 'more'; slices++)
      ({ state } = await world.drive(world.host(options).executor, { budgetMs: 0, graceMs: 1_000 }));
    expect(slices).toBeGreaterThan(3);
    expect(world.budget.log.filter((line) => line.startsWith('check'))).toHaveLength(1);
    expect(world.budget.counted.size).toBe(4);
    expect(world.budget.open.size).toBe(0);
    const audit = createAudit({ store: world.store });
    expect(await audit.totals({ by: 'day' })).toMatchObject([{ runs: 1, iterations: 4 }]);
    expect(await audit.runs()).toMatchObject([{ runId: 'r', status: 'ok', iterations: 4 }]);
    expect(world.outcomes[0]?.spend?.tokens).toBe(world.budget.total().tokens);
  });

  test('maxRuntimeMs counts the time in which a process works, and no time between slices (engine 11)', async () => {
    const ended = async (maxRuntimeMs: number, budgetMs: number) => {
      const world = slicedWorld({ defaults: { maxRuntimeMs } });
      await world.host().start({ runId: 'r' }, later);
      let driven: Driven = { state: 'more', boundaries: 0 };
      while (driven.state === 'more') {
        driven = await world.drive(world.host().executor, { budgetMs, graceMs: 1_000 });
        await world.clock.advance(60 * MINUTE);
      }
      return world;
    };
    const whole = await ended(60, 10 * MINUTE);
    expect(whole.outcomes).toMatchObject([{ status: 'timeout' }]);
    const sliced = await ended(60, 0);
    expect(sliced.outcomes).toMatchObject([{ status: 'timeout' }]);
    expect(Math.abs(sliced.modelCalls() - whole.modelCalls())).toBeLessThanOrEqual(1);
    expect((await ended(1_000, 0)).outcomes).toMatchObject([{ status: 'ok' }]);
  });
});
