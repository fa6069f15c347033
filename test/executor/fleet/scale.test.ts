import { memoryStore } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { fleetHost, leaveRuns, replies, runIds } from '../../fixtures/fleet.ts';
import { settle } from '../../fixtures/host.ts';

/** Many under `npm run torture`. */
const COUNT = process.env.PAWL_TORTURE ? 2_000 : 100;
const NOISY = process.env.PAWL_TORTURE ? 10_000 : 120;

test('8 executors take all due runs, each once, and no claim is refused (engine 43)', {
  timeout: 300_000,
}, async () => {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  await leaveRuns(store, clock, runIds(COUNT));
  let claims = 0;
  const counted = {
    ...store,
    claim: (...args: Parameters<typeof store.claim>) => {
      claims += 1;
      return store.claim(...args);
    },
  };
  const hosts = Array.from({ length: 8 }, () => fleetHost(counted, clock, { script: replies(COUNT) }));
  const workers = hosts.map((host) => host.work());
  const ended = () => hosts.flatMap((host) => host.ended);
  for (let turn = 0; turn < 200 && ended().length < COUNT; turn++) {
    await settle();
    await clock.advance(100);
  }
  expect(ended().toSorted()).toEqual(
    runIds(COUNT)
      .map(({ runId }) => runId)
      .toSorted(),
  );
  expect(workers.reduce((sum, worker) => sum + worker.stats().taken, 0)).toBe(COUNT);
  expect(claims).toBe(0);
  const calls = hosts.reduce((sum, { model }) => sum + model.calls.length, 0);
  expect(calls).toBe(COUNT);
  await Promise.all(hosts.map(({ executor }) => executor.shutdown()));
});

test('with fairBy one run of each of 50 keys begins within the first 100, behind many of one key (engine 44)', {
  timeout: 300_000,
}, async () => {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const of = (tenant: string, count: number) => runIds(count, tenant).map((run) => ({ ...run, labels: { tenant } }));
  await leaveRuns(store, clock, of('noisy', NOISY), { fairBy: 'tenant' });
  await leaveRuns(store, clock, Array.from({ length: 50 }, (_, i) => of(`quiet${i}`, 1)).flat(), { fairBy: 'tenant' });
  const host = fleetHost(store, clock, { fairBy: 'tenant', script: replies(NOISY + 50) });
  const worker = host.work({ concurrency: 4 });
  for (let turn = 0; turn < 200 && host.ended.length < 100; turn++) await settle(5);
  const quiet = host.ended.slice(0, 100).filter((runId) => runId.startsWith('quiet'));
  expect(quiet).toHaveLength(50);
  await worker.drain();
  await host.executor.shutdown();
});
