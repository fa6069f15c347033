import type pg from 'pg';
import { describe, test } from 'vitest';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { checkpointStoreContract } from '../../../src/testing/store-contract/store-contract.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { checkCost, checkLists } from '../caller-lists.ts';
import { damageRun, emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();
let pool: pg.Pool | undefined;

function open(): PostgresStore {
  pool ??= server.pool();
  return postgresStore({ pool, schema });
}

describe.skipIf(whyNoPostgres)('PostgreSQL store', () => {
  const cases = checkpointStoreContract<PostgresStore>({
    create: async () => open(),
    reopen: async () => open(),
    damage: (_, runId, kind) => damageRun(server, { schema, runId, kind }),
    dispose: async (store) => {
      await store.close();
      await emptyTables(server, schema);
    },
  });
  for (const { title, run } of cases) test(title, run);

  test('has lists of a caller with the runs of that caller alone, and reads no others for them (web 17, 19)', async () => {
    const store = open();
    await checkLists(store);
    await store.close();
    await emptyTables(server, schema);
    const encrypted = await checkCost((codec) => postgresStore({ pool: server.pool(), schema, codec }));
    await encrypted.close();
    await emptyTables(server, schema);
  });
});
