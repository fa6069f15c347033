import { type Executor, type MemoryStore, memoryStore } from 'pawl';
import { hang, reply, testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { fleetHost, leaveRuns, replies, runIds } from '../../fixtures/fleet.ts';
import { gate, settle, until } from '../../fixtures/host.ts';

const executors: Executor[] = [];
afterEach(() => Promise.all(executors.splice(0).map((executor) => executor.shutdown())));

/** A store, and the processes of a fleet on it. */
function fleet() {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const process = (options: Parameters<typeof fleetHost>[2] = {}) => {
    const host = fleetHost(store, clock, options);
    executors.push(host.executor);
    return host;
  };
  const leave = (count: number, prefix?: string) => leaveRuns(store, clock, runIds(count, prefix));
  return { clock, store, process, leave };
}

describe('a worker', () => {
  test('takes due runs as long as it has free places, and two processes end each of them once (engine 15, 16)', async () => {
    const { clock, store, process, leave } = fleet();
    await leave(40);
    const [one, two] = [process({ script: replies(40) }), process({ script: replies(40) })];
    const workers = [one.work({ concurrency: 4 }), two.work({ concurrency: 4 })];
    for (let i = 0; i < 20; i++) {
      await settle();
      expect(workers.every((worker) => worker.stats().live <= 4)).toBe(true);
    }
    await clock.advance(2_000);
    const all = runIds(40).map(({ runId }) => runId);
    expect([...one.ended, ...two.ended].sort()).toEqual(all.sort());
    expect(Math.min(one.ended.length, two.ended.length)).toBeGreaterThan(5);
    expect(one.model.calls.length + two.model.calls.length).toBe(40);
    expect(await store.listInterrupted()).toEqual([]);
    expect([...one.warnings(), ...two.warnings()]).toEqual([]);
    expect(workers.map((worker) => worker.stats().taken).reduce((a, b) => a + b)).toBe(40);
  });

  test('leaves a run at the end of its budget to any worker of the fleet (engine 2, 15)', async () => {
    const { clock, store, process, leave } = fleet();
    await leave(1);
    const one = process({ script: [hang()] });
    const first = one.work({ budgetMs: 5_000, graceMs: 1_000 });
    await clock.advance(4_000);
    expect(first.stats().live).toBe(1);
    const two = process({ script: replies(1) });
    two.work();
    const drained = first.drain({ drainMs: 1_000 });
    await clock.advance(3_000);
    await drained;
    expect([one.ended, two.ended]).toEqual([[], ['run-0']]);
    expect(await store.listInterrupted()).toEqual([]);
  });
});

describe('a worker that finds no due run', () => {
  test('asks each `dueMs`, give or take 20 %, and once each time (engine 15, 44)', async () => {
    const { clock, process } = fleet();
    let number = 0;
    const worker = process({ random: () => number }).work({ dueMs: 1_000 });
    await clock.advance(799);
    expect(worker.stats().polls).toBe(1);
    await clock.advance(1);
    expect(worker.stats().polls).toBe(2);
    number = 1;
    await clock.advance(800);
    expect(worker.stats().polls).toBe(3);
    await clock.advance(1_199);
    expect(worker.stats().polls).toBe(3);
    await clock.advance(1);
    expect(worker.stats()).toEqual({ live: 0, taken: 0, parked: 0, polls: 4, storeAway: false });
  });

  test('waits at least 1 ms for a run that is due next, as timers do: a store may know a time more finely (engine 15)', async () => {
    const { clock, store } = fleet();
    let nextMs = 0.4;
    const take = async () => ({ now: 0, claims: [], nextAt: nextMs });
    const taking: MemoryStore = { ...store, due: { ...store.due, take } };
    const host = fleetHost(taking, clock);
    executors.push(host.executor);
    const worker = host.work();
    await settle();
    expect(worker.stats().polls).toBe(1);
    await clock.advance(0.9);
    expect(worker.stats().polls).toBe(1);
    nextMs = 1_000;
    await clock.advance(0.2);
    expect(worker.stats().polls).toBe(2);
  });

  test('asks at the time at which the next run is due, if that is before (engine 15)', async () => {
    const { clock, store, process, leave } = fleet();
    await leave(1);
    const claim = await store.claim('run-0', 'a person', 60_000);
    await store.due.leave(claim as never, { dueAt: clock.now() + 250, readUpTo: 0, attempts: 0 });
    const host = process({ script: replies(1) });
    host.work({ dueMs: 10_000 });
    await clock.advance(249);
    expect(host.model.calls).toHaveLength(0);
    await clock.advance(1);
    expect(host.ended).toEqual(['run-0']);
  });
});

describe('a worker whose process makes a run due', () => {
  test('takes the run at once, without a poll (engine 12, 15)', async () => {
    const { process } = fleet();
    const host = process({ script: replies(1) });
    host.work({ dueMs: 600_000 });
    await settle();
    const run = await host.executor.start(host.agent, { prompt: 'Go.', runId: 'r' }, { drive: 'later' });
    await until(() => host.ended.length === 1);
    expect(run.accepted).toBe('started');
  });
});

describe('a worker with free places', () => {
  test('asks again as soon as a place is free while others are due, and not before (engine 15)', async () => {
    const { process, leave } = fleet();
    await leave(3);
    const gates = [gate(), gate(), gate()];
    const host = process({ script: gates.map((each) => () => each.pass().then(() => reply('done'))) });
    const worker = host.work({ concurrency: 1, dueMs: 600_000 });
    for (const [i, each] of gates.entries()) {
      await each.reached;
      expect(worker.stats()).toMatchObject({ live: 1, taken: i + 1, polls: i + 1 });
      each.open();
    }
    await until(() => host.ended.length === 3);
  });
});

describe('a worker and its store', () => {
  test('takes nothing while the store is away, asks with pauses up to 30 s, and takes runs again when it is back (engine 22)', async () => {
    const { clock, store, leave } = fleet();
    await leave(1);
    let isAway = true;
    const asked: number[] = [];
    const take: typeof store.due.take = async (options) => {
      asked.push(clock.monotonic());
      if (isAway) throw new Error('no database');
      return store.due.take(options);
    };
    const host = fleetHost({ ...store, due: { ...store.due, take } }, clock, { script: replies(1) });
    executors.push(host.executor);
    const worker = host.work();
    await clock.advance(300_000);
    expect(worker.stats()).toMatchObject({ live: 0, storeAway: true });
    const pauses = asked.slice(1).map((at, i) => at - (asked[i] ?? 0));
    expect(pauses.slice(0, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(host.warnings()).toEqual(['executor: the due runs cannot be read']);
    isAway = false;
    await clock.advance(30_000);
    expect([host.ended, worker.stats().storeAway]).toEqual([['run-0'], false]);
  });

  test('needs a store in which runs rest (engine 15)', () => {
    const { clock } = fleet();
    const { due: _, ...poor } = memoryStore({ clock });
    const without = fleetHost(poor as MemoryStore, clock);
    expect(() => without.work()).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    const none = fleetHost(undefined as never, clock);
    expect(() => none.work()).toThrow(expect.objectContaining({ code: 'NOT_DURABLE' }));
  });
});

describe('the options of work', () => {
  test.for([
    [{ concurrency: 0 }, 'work: concurrency must be a whole number above 0, not 0'],
    [{ concurrency: 1.5 }, 'work: concurrency must be a whole number above 0, not 1.5'],
    [{ perKey: -1 }, 'work: perKey must be a whole number above 0, not -1'],
    [{ dueMs: 0 }, 'work: dueMs must be a number of milliseconds, 1 or more, not 0'],
    [{ budgetMs: Number.NaN }, 'work: budgetMs must be a number of milliseconds, 0 or more, not NaN'],
    [{ listen: 'postgres://' }, 'work: listen must be a function, not a string'],
    [{ signal: {} }, 'work: signal'],
    [{ perKey: 2 }, 'work: perKey needs the label that has the key: createExecutor({ fairBy })'],
    [{ places: 2 }, 'work: unknown option places'],
  ] as const)('%j are refused: %s', ([options, message]) => {
    const { process } = fleet();
    expect(() => process().work(options as never)).toThrow(message);
  });

  test('work is refused after a shutdown', async () => {
    const { process } = fleet();
    const host = process();
    await host.executor.shutdown();
    expect(() => host.work()).toThrow(expect.objectContaining({ code: 'ERR_SHUTDOWN' }));
  });
});
