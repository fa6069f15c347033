import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { RestingStore } from '../../../src/store/due-port.ts';
import { fleetHost, leaveRuns, replies, runIds } from '../../fixtures/fleet.ts';
import { settle, toolOf, until } from '../../fixtures/host.ts';
import { countingClaims, recoverTogether } from '../../fixtures/recovering-together.ts';
import { freshPath } from '../../store/sqlite/files.ts';

describe('processes that call recover() at once on one store', () => {
  test('claim each run once, and each reports what it took, in memory (engine 15, 16)', async () => {
    const store = memoryStore();
    await recoverTogether(() => store, { runs: 60, processes: 8 });
  });

  test('claim each run once, and each reports what it took, in SQLite (engine 15, 16)', async () => {
    const path = freshPath();
    const opened: ReturnType<typeof sqliteStore>[] = [];
    await recoverTogether(
      () => {
        const store = sqliteStore({ path, durability: 'process' });
        opened.push(store);
        return store as RestingStore;
      },
      { runs: 40, processes: 4 },
    );
    await Promise.all(opened.map((store) => store.close()));
  });

  test('claim each run once as well when it becomes due later, by their sweeps (engine 15, 16)', async () => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    // All of them have read that the runs are due before one takes any.
    let looking = 0;
    const allLook = Promise.withResolvers<void>();
    const list: typeof store.due.list = async (page) => {
      const found = await store.due.list(page);
      if (found.runs.length > 0 && ++looking === 6) allLook.resolve();
      if (found.runs.length > 0) await allLook.promise;
      return found;
    };
    const stores = Array.from({ length: 6 }, () => countingClaims({ ...store, due: { ...store.due, list } }));
    const hosts = stores.map((each) => fleetHost(each.store, clock, { script: replies(30) }));
    await Promise.all(hosts.map(({ executor }) => executor.recover()));
    await leaveRuns(store, clock, runIds(30));
    await clock.advance(2_000);
    await until(() => hosts.flatMap(({ ended }) => ended).length === 30);
    expect(stores.reduce((sum, { counts }) => sum + counts.given, 0)).toBe(30);
    expect(stores.reduce((sum, { counts }) => sum + counts.claim, 0)).toBe(0);
    await Promise.all(hosts.map(({ executor }) => executor.shutdown()));
  });
});

describe('a run that a process cannot continue', () => {
  const lacking = { agent: { tools: ['look'] } };
  const able = { tools: [toolOf('look')] };

  async function leftOne() {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    await leaveRuns(store, clock, runIds(1));
    return { clock, store, host: (options: object) => fleetHost(store, clock, options) };
  }

  test('is given back by recover() without a pause: the next one, of any process, tries it (engine 19)', async () => {
    const { store, host } = await leftOne();
    const unable = host(lacking);
    for (let boot = 0; boot < 4; boot++) {
      const { skipped } = await unable.executor.recover();
      expect(skipped).toEqual([{ runId: 'run-0', reason: expect.stringContaining('UNKNOWN_TOOL') }]);
      expect((await store.due.list({ limit: 5 })).runs).toMatchObject([{ runId: 'run-0', dueAt: 0, attempts: 0 }]);
    }
    expect((await host({ ...able, script: replies(1) }).executor.recover()).resumed).toEqual([{ runId: 'run-0' }]);
    await unable.executor.shutdown();
  });

  test('is due for other processes as soon as a worker has given it back, and listed as interrupted (engine 19)', async () => {
    const { store, host } = await leftOne();
    const unable = host(lacking);
    const worker = unable.executor.work();
    await settle();
    expect(worker.stats()).toMatchObject({ taken: 1, live: 0 });
    await worker.drain();
    expect((await store.due.list({ limit: 5 })).runs).toMatchObject([{ runId: 'run-0', dueAt: 0 }]);
    expect(await unable.executor.list()).toMatchObject([{ runId: 'run-0', status: 'interrupted' }]);
    expect(await store.due.countResting()).toBe(0);
    const { resumed, waiting } = await host({ ...able, script: replies(1) }).executor.recover();
    expect([resumed, waiting]).toEqual([[{ runId: 'run-0' }], 0]);
    await unable.executor.shutdown();
  });
});
