import { beforeAll, describe, expect, test } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { emptyFolder } from '../cli/pawl.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { havePage, StudioProcess } from './studio-process.ts';

const server = postgresServer(['fsync=off']);

beforeAll(havePage);

describe.skipIf(whyNoPostgres)('`pawl studio` on PostgreSQL', () => {
  test('makes no schema, reads in sessions that may not write, and writes only with --write, at the first action (studio 17, 25, 27)', async () => {
    const schema = server.freshSchema();
    const cwd = emptyFolder();
    const url = `${server.url}${server.url.includes('?') ? '&' : '?'}schema=${schema}`;
    const studio = await StudioProcess.start(['--write'], { cwd, env: { PAWL_STORE: url } });
    expect((await studio.get('/runs')).body).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      detail: `the PostgreSQL store in schema ${schema} does not exist`,
    });
    const schemas = () => server.sql('SELECT 1 AS found FROM pg_namespace WHERE nspname = $1', schema);
    expect(await schemas()).toEqual([]);
    await using store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('r1'));
    const writes = async () => {
      const tables = `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::text AS count FROM pg_stat_user_tables WHERE schemaname = $1`;
      await server.sql('SELECT pg_stat_clear_snapshot()');
      return (await server.sql(tables, schema))[0]?.count;
    };
    const before = await writes();
    for (const path of ['/runs', '/runs/r1/record', '/waiting', '/threads', '/store'])
      expect([path, (await studio.get(path)).status]).toEqual([path, 200]);
    expect((await studio.get('/runs')).body).toMatchObject({ items: [{ runId: 'r1' }] });
    expect(await writes()).toBe(before);
    expect((await studio.post('/runs/r1/steer', { text: 'faster' })).status).toBeLessThan(300);
    expect(await store.commands.inbox({ runId: 'r1' })).toMatchObject([{ command: { kind: 'steer', text: 'faster' } }]);
    expect(await studio.stop()).toBe(0);
  });
});
