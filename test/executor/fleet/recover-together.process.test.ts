import { postgresStore } from 'pawl/stores/postgres';
import { describe, test } from 'vitest';
import type { RestingStore } from '../../../src/store/due-port.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { recoverTogether } from '../../fixtures/recovering-together.ts';

const server = postgresServer(['fsync=off']);

describe.skipIf(whyNoPostgres)('processes that call recover() at once on one PostgreSQL', () => {
  test('claim each run once, and each reports what it took (engine 15, 16)', async () => {
    const schema = server.freshSchema();
    const open = () => postgresStore({ pool: server.pool(), schema }) as RestingStore;
    await recoverTogether(open, { runs: 40, processes: 4 });
  });
});
