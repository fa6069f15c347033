import { type Executor, type ListenClient, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { fleetHost, leaveRuns, replies, runIds } from '../../fixtures/fleet.ts';
import { gate, settle, toolOf } from '../../fixtures/host.ts';

const executors: Executor[] = [];
let clock = testClock(1_000_000);
afterEach(async () => {
  const down = Promise.all(executors.splice(0).map((executor) => executor.shutdown()));
  await clock.advance(10_000);
  await down;
});

/** A store, and the processes of a fleet on it. */
function fleet() {
  clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const process = (options: Parameters<typeof fleetHost>[2] = {}, on = store, at = clock) => {
    const host = fleetHost(on, at, options);
    executors.push(host.executor);
    return host;
  };
  return { clock, store, process };
}

const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));

describe('drain', () => {
  test('takes nothing more, lets a call with effects end, and leaves the run to others, without an attempt (engine 4, 20)', async () => {
    const { store, process } = fleet();
    await leaveRuns(store, clock, runIds(2));
    const pay = toolOf('pay', 'once', async () => {
      await sleep(5_000);
      return 'paid';
    });
    const one = process({ tools: [pay], agent: { tools: [pay] }, script: [callTool('pay'), reply('never')] });
    const worker = one.work({ concurrency: 1 });
    await clock.advance(1_000);
    let isDrained = false;
    void worker.drain({ drainMs: 10_000 }).then(() => {
      isDrained = true;
    });
    await clock.advance(3_000);
    expect([isDrained, worker.stats().live]).toEqual([false, 1]);
    await clock.advance(2_000);
    expect([isDrained, worker.stats().live, worker.stats().taken]).toEqual([true, 0, 1]);
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs.map(({ attempts }) => attempts)).toEqual([0, 0]);
    const { polls } = worker.stats();
    await clock.advance(60_000);
    expect([worker.stats().polls, one.model.calls.length]).toEqual([polls, 1]);
    const two = process({ tools: [pay], agent: { tools: [pay] }, script: replies(2) });
    two.work();
    await clock.advance(1_000);
    expect(two.ended).toHaveLength(2);
  });

  test('is part of a shutdown, and of the abort of the signal that work was given (engine 20)', async () => {
    const { store, process } = fleet();
    await leaveRuns(store, clock, runIds(2));
    const controller = new AbortController();
    const [one, two] = [process({ script: [hang()] }), process({ script: [hang()] })];
    const aborted = one.work({ concurrency: 1, graceMs: 1_000, signal: controller.signal });
    const shut = two.work({ concurrency: 1 });
    await clock.advance(1_000);
    expect([aborted.stats().live, shut.stats().live]).toEqual([1, 1]);
    controller.abort();
    const down = two.executor.shutdown({ drainMs: 2_000 });
    await clock.advance(2_000);
    await down;
    expect([aborted.stats().live, shut.stats().live]).toEqual([0, 0]);
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs.map(({ attempts }) => attempts)).toEqual([0, 0]);
  });

  test('gives back at once what the store gives while it drains: the next process has it (engine 20)', async () => {
    const { store, process } = fleet();
    await leaveRuns(store, clock, runIds(3));
    const asked = gate();
    const takeNow: typeof store.due.take = async (options) => {
      const taken = await store.due.take(options);
      await asked.pass();
      return taken;
    };
    const one = process({}, { ...store, due: { ...store.due, take: takeNow } });
    const worker = one.work();
    await asked.reached;
    const drained = worker.drain();
    asked.open();
    await drained;
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs.map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
    expect(one.model.calls).toHaveLength(0);
  });
});

test.each([
  ['recover', ({ executor }: Pick<ReturnType<typeof fleetHost>, 'executor'>) => executor.recover()],
  ["drive('due')", ({ executor }) => executor.drive('due')],
  [
    'the sweep',
    async ({ executor }) => {
      await executor.recover();
      await clock.advance(10_000);
    },
  ],
])(
  'a shutdown waits for what the store gives %s meanwhile, and gives it back without an attempt (engine 4)',
  async (what, take) => {
    const { store, process } = fleet();
    await leaveRuns(store, clock, runIds(3));
    const [asked, back] = [gate(), gate()];
    const takeNow: typeof store.due.take = async (options) => {
      const taken = await store.due.take(options);
      await asked.pass();
      return taken;
    };
    const release: typeof store.release = async (...args) => {
      await back.pass();
      return store.release(...args);
    };
    // The sweep finds what `recover` did not list.
    const listInterrupted: typeof store.listInterrupted = (options) =>
      what === 'the sweep' ? Promise.resolve([]) : store.listInterrupted(options);
    const one = process({}, { ...store, due: { ...store.due, take: takeNow }, release, listInterrupted });
    const taking = take(one);
    await asked.reached;
    let isDown = false;
    const down = one.executor.shutdown().then(() => {
      isDown = true;
    });
    await settle();
    expect(isDown).toBe(false);
    asked.open();
    await back.reached;
    await settle();
    expect(isDown).toBe(false);
    back.open();
    await Promise.all([down, taking]);
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs.map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
    expect(one.model.calls).toHaveLength(0);
  },
);

describe('a busy process', () => {
  test('takes nothing while its timers are late by more than 200 ms for 5 s, and again when they are in time (engine 21)', async () => {
    const { store, process } = fleet();
    let lateMs = 0;
    const busy = {
      ...clock,
      setTimeout: (callback: () => void, ms: number) => clock.setTimeout(callback, ms + lateMs),
    };
    const host = process({ script: replies(3) }, store, busy as typeof clock);
    const worker = host.work();
    await clock.advance(3_000);
    lateMs = 250;
    await clock.advance(4_000);
    await leaveRuns(store, clock, runIds(1));
    await clock.advance(1_500);
    expect(host.ended).toHaveLength(1);
    await clock.advance(2_000);
    const { polls } = worker.stats();
    await leaveRuns(store, clock, runIds(1, 'late'));
    await clock.advance(20_000);
    expect([host.ended.length, worker.stats().polls]).toEqual([1, polls]);
    lateMs = 0;
    await clock.advance(3_000);
    expect(host.ended).toHaveLength(2);
  });

  test('takes runs while its timers are late for a moment (engine 21)', async () => {
    const { store, process } = fleet();
    let lateMs = 0;
    const busy = {
      ...clock,
      setTimeout: (callback: () => void, ms: number) => clock.setTimeout(callback, ms + lateMs),
    };
    const host = process({ script: replies(10) }, store, busy as typeof clock);
    host.work();
    for (let i = 0; i < 5; i++) {
      lateMs = 1_000;
      await clock.advance(4_000);
      lateMs = 0;
      await clock.advance(2_500);
      await leaveRuns(store, clock, runIds(1, `run-${i}`));
      lateMs = 1_000;
      await clock.advance(2_500);
    }
    expect(host.ended).toHaveLength(5);
  });
});

/** A connection of a database that notifies. */
class Connection implements ListenClient {
  readonly queries: string[] = [];
  readonly listeners = new Map<string, (...args: never[]) => void>();
  hasEnded = false;
  async query(text: string) {
    this.queries.push(text);
  }
  on(event: string, listener: (...args: never[]) => void) {
    this.listeners.set(event, listener);
  }
  async end() {
    this.hasEnded = true;
  }
  emit(event: string, value?: unknown) {
    this.listeners.get(event)?.(value as never);
  }
}

describe('a worker that listens', () => {
  test('takes a run when it is notified, and notifications that come together cost one question (engine 15)', async () => {
    const { store, process } = fleet();
    const connection = new Connection();
    const host = process({ script: replies(1) });
    const worker = host.work({ dueMs: 600_000, listen: async () => connection });
    await clock.advance(100);
    expect(connection.queries).toEqual(['LISTEN pawl_due']);
    await leaveRuns(store, clock, runIds(1));
    const { polls } = worker.stats();
    for (let i = 0; i < 100; i++) connection.emit('notification', { channel: 'pawl_due' });
    await clock.advance(50);
    expect(host.ended).toEqual(['run-0']);
    expect(worker.stats().polls).toBeLessThanOrEqual(polls + 2);
    await worker.drain();
    expect(connection.hasEnded).toBe(true);
  });

  test('polls while the connection is lost, and makes it again with pauses up to 30 s; it asks at once when it has one (engine 15)', async () => {
    const { store, process } = fleet();
    const connections: Connection[] = [];
    const times: number[] = [];
    let isAway = false;
    const listen = async () => {
      times.push(clock.monotonic());
      if (isAway) throw new Error('no database');
      connections.push(new Connection());
      return connections.at(-1) as Connection;
    };
    const host = process({ script: replies(2) });
    host.work({ dueMs: 5_000, listen });
    await clock.advance(0);
    isAway = true;
    connections[0]?.emit('error', new Error('terminated by an administrator'));
    connections[0]?.emit('end');
    await leaveRuns(store, clock, runIds(1));
    await clock.advance(120_000);
    expect(host.ended).toEqual(['run-0']);
    const pauses = times.slice(2).map((at, i) => at - (times[i + 1] ?? 0));
    expect(pauses.slice(0, 6)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(host.warnings()).toEqual(['work: the connection that listens is lost; due runs are polled']);
    isAway = false;
    await clock.advance(30_000);
    expect(connections).toHaveLength(2);
    connections[0]?.emit('notification');
    await leaveRuns(store, clock, runIds(1, 'second'));
    connections[1]?.emit('notification');
    await clock.advance(50);
    expect(host.ended).toHaveLength(2);
  });

  test('closes a connection that comes after its time, or after the end (engine 15)', async () => {
    const { process } = fleet();
    const first = gate<Connection>();
    const host = process({ defaults: { portMs: 1_000 } });
    let calls = 0;
    const second = new Connection();
    const worker = host.work({ listen: () => (calls++ === 0 ? first.pass() : Promise.resolve(second)) });
    await clock.advance(3_000);
    const late = new Connection();
    first.open(late);
    await settle();
    expect([late.hasEnded, second.hasEnded, second.queries.length]).toEqual([true, false, 1]);
    await worker.drain();
    expect(second.hasEnded).toBe(true);
  });
});
