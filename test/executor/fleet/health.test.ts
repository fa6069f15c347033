import { type Health, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { StoreFullError } from '../../../src/values/errors.ts';
import { type HostOptions, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { onClock } from '../../fixtures/on-clock.ts';
import { plainStore, type StoreCall, watchedStore } from '../../fixtures/watched-store.ts';

/** A process on a store that a test can take away. */
function process(before: (call: StoreCall) => unknown = () => {}, options: HostOptions = { script: [hang()] }) {
  const clock = testClock(1_000_000);
  const store = watchedStore({ before }, memoryStore({ clock }));
  const host = hostOf({ store, clock, ...options, defaults: { portMs: 30_000 } });
  const health = () => onClock(clock, host.executor.health(), { mostMs: 2_000 });
  return { ...host, clock, store, health };
}

const counting = ({ method }: StoreCall) => method === 'due.countRuns';

describe('executor.health', () => {
  test('says that all is well, with the counts of the store and no id or text of a run (operations 1)', async () => {
    const { health, start } = process();
    await start({ runId: 'secret-id', prompt: 'secret' }, { drive: 'later' });
    const found = await health();
    expect(found).toEqual({
      live: true,
      ready: true,
      reasons: [],
      store: 'ok',
      checkedAt: expect.any(Number),
      draining: false,
      runs: { live: 0, due: 1, dueAgeMs: expect.any(Number), parked: 0 },
    } satisfies Health);
    expect(JSON.stringify(found)).not.toContain('secret');
  });

  test('asks the store at most once in 2 s, however many ask, and writes nothing (operations 1, 5)', async () => {
    const { health, store, clock, executor } = process();
    await Promise.all(Array.from({ length: 1_000 }, () => executor.health()));
    expect(store.methods).toEqual(['due.countRuns']);
    await clock.advance(2_000);
    await health();
    expect(store.methods).toEqual(['due.countRuns', 'due.countRuns']);
  });

  test('answers within a second while the store does not (operations 1)', async () => {
    const { executor, clock } = process((call) => counting(call) && new Promise(() => {}));
    const from = clock.monotonic();
    const found = await onClock(clock, executor.health(), { mostMs: 1_000 });
    expect(clock.monotonic() - from).toBeLessThanOrEqual(1_000);
    expect(found).toMatchObject({ live: true, ready: false, store: 'slow', reasons: ['STARTING'] });
  });

  test('says that the store is full while it refuses writes and answers reads, and no more once it has room (operations 3)', async () => {
    let isFull = false;
    const writes = ['save', 'append'];
    const refuse = ({ method }: StoreCall) =>
      isFull && writes.includes(method) && Promise.reject(new StoreFullError('no space is left'));
    // The disk is full once the run works.
    const fill = toolOf('fill', 'read', async () => {
      isFull = true;
      return 'full';
    });
    // A call with an effect waits for room.
    const script = [callTool('fill'), callTool('pay'), reply('end')];
    const { health, start, clock, executor } = process(refuse, { script, tools: [fill, toolOf('pay', 'once')] });
    expect(await health()).toMatchObject({ ready: true, reasons: [] });
    const run = await start({ runId: 'a' });
    for (let i = 0; !isFull && i < 100; i++) await settle();
    await clock.advance(1_000);
    for (let i = 0; i < 3; i++) {
      expect(await health()).toMatchObject({ live: true, ready: false, store: 'ok', reasons: ['STORE_FULL'] });
      for (let s = 0; s < 30; s++) await clock.advance(1_000);
    }
    isFull = false;
    for (let s = 0; s < 45; s++) await clock.advance(1_000);
    expect((await run.result).status).toBe('ok');
    expect(await health()).toMatchObject({ ready: true, reasons: [] });
    await executor.shutdown();
  });

  test('without a store, or with one that cannot count, has no counts (operations 1)', async () => {
    expect(await hostOf().executor.health()).toMatchObject({ live: true, ready: true, store: 'none' });
    const found = await hostOf({ store: plainStore() }).executor.health();
    expect(found).toMatchObject({ live: true, ready: true, store: 'ok' });
    expect(found.runs).toBeUndefined();
  });

  test('says ready again within 5 s after a store was away for 60 s, and is live all the time (operations 2, 3, 5)', async () => {
    let isAway = false;
    const { health, clock, executor } = process((call) => {
      if (isAway) throw new Error(`${call.method}: connection refused`);
    });
    executor.work();
    expect(await health()).toMatchObject({ ready: true });
    isAway = true;
    const seen: string[] = [];
    for (let s = 0; s < 60; s += 5) {
      await clock.advance(5_000);
      const { live, ready, store, reasons } = await health();
      expect(live).toBe(true);
      seen.push(`${ready} ${store} ${reasons.join()}`);
    }
    expect(seen[0]).toBe('true away ');
    expect(seen.at(-1)).toBe('false away STORE_AWAY');
    isAway = false;
    await clock.advance(4_000);
    expect(await health()).toMatchObject({ ready: true, store: 'ok', reasons: [] });
    await onClock(clock, executor.shutdown({ drainMs: 10 }));
  });

  test('says DRAINING from the shutdown on (operations 3)', async () => {
    const { executor, health } = process();
    await health();
    const leaving = executor.shutdown();
    expect(await health()).toMatchObject({ live: true, ready: false, draining: true, reasons: ['DRAINING'] });
    await leaving;
  });

  test('says LOOP_BLOCKED after the event loop stood still for 40 s, and not after 20 s (operations 2, 5)', async () => {
    const clock = testClock(1_000_000);
    let stoodMs = 0;
    const late = { ...clock, monotonic: () => clock.monotonic() + stoodMs };
    const { executor } = hostOf({ clock: late });
    await executor.health();
    await clock.advance(900);
    stoodMs = 20_000;
    expect(await executor.health()).toMatchObject({ live: true });
    stoodMs = 40_000;
    expect(await executor.health()).toMatchObject({ live: false, ready: false, reasons: ['LOOP_BLOCKED'] });
    await clock.advance(2_000);
    expect(await executor.health()).toMatchObject({ live: true, ready: true, reasons: [] });
  });

  test('says NOT_POLLING of a worker with free places that asks no more, and not while it asks (operations 2)', async () => {
    const clock = testClock(1_000_000);
    let isLost = false;
    // The timer of its next look never fires.
    const setTimeout: typeof clock.setTimeout = (call, ms) =>
      isLost && Math.round(ms) === 840 ? 0 : clock.setTimeout(call, ms);
    const store = memoryStore({ clock });
    const { executor } = hostOf({ store, clock: { ...clock, setTimeout }, random: () => 0.1 });
    executor.work();
    await settle();
    await clock.advance(90_000);
    expect(await executor.health()).toMatchObject({ live: true });
    isLost = true;
    await clock.advance(90_000);
    expect(await executor.health()).toMatchObject({ live: false, reasons: ['NOT_POLLING'] });
    await onClock(clock, executor.shutdown({ drainMs: 10 }));
  });

  test('says nothing of a worker whose places are all taken (operations 2)', async () => {
    const { executor, clock, health, start } = process();
    await start({ runId: 'a' }, { drive: 'later' });
    const worker = executor.work({ concurrency: 1 });
    await until(() => worker.stats().live === 1);
    await clock.advance(120_000);
    expect(await health()).toMatchObject({ live: true });
    await onClock(clock, executor.shutdown({ drainMs: 10 }));
  });
});
