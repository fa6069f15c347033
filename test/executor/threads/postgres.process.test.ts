import { postgresStore } from 'pawl/stores/postgres';
import { afterEach, describe, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { killsBehindParked, killsOfRetry, type ThreadedStore } from './kill-sweeps.ts';

const server = postgresServer(['fsync=off']);
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
  test('goes on without its parked turn, and answers the message behind it once (edges 31)', async () => {
    await killsBehindParked(open);
  }, 180_000);

  test('keeps the message that was retried (edges 10)', async () => {
    await killsOfRetry(open);
  }, 180_000);
});
