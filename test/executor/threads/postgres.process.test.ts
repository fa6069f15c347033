import { postgresStore } from 'pawl/stores/postgres';
import { afterEach, describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { gate, until } from '../../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { killsBehindParked, killsOfRetry, leftAndParked, retryOfLast, type ThreadedStore } from './kill-sweeps.ts';
import { threadHost } from './thread-host.ts';

const server = postgresServer(['fsync=off']);
/** In memory each write is tried: by default some of them are here. */
const STRIDE = torture > 1 ? 1 : 3;
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

function open(): ThreadedStore {
  const store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
  opened.push(store);
  return store as unknown as ThreadedStore;
}

describe.skipIf(whyNoPostgres)('a thread in PostgreSQL whose process is killed at any write', () => {
  test('continues without its parked turn, and answers the message behind it once (edges 31)', async () => {
    await killsBehindParked(open, 'recover', STRIDE);
  }, 180_000);

  test('is found by a worker while messages wait behind its parked turn (edges 31)', async () => {
    const store = open();
    const asked = gate<never>();
    const left = await leftAndParked(store, 'PARKED', { script: [() => asked.pass()] });
    const heldUp = async () => (await store.threads.list({ heldUp: true })).map(({ live }) => live);
    await asked.reached;
    await left.before.thread.send({ id: 'm2', text: 'next' });
    expect(await heldUp()).toEqual([]);
    await left.park();
    expect(await heldUp()).toEqual([left.first.runId]);
    const { host, thread } = threadHost({ store });
    host.executor.work();
    await until(async () => (await thread.turn('m2'))?.state === 'ended', 'the answer');
    expect(await heldUp()).toEqual([]);
    await host.executor.shutdown();
  }, 180_000);

  test('keeps the message that was retried (edges 10)', async () => {
    await killsOfRetry(open, retryOfLast, STRIDE);
  }, 180_000);
});
