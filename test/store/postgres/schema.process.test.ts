import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { type PostgresPool, type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);
const unavailable = { code: 'STORE_UNAVAILABLE' };

/** What there is in a schema, to see that nothing was touched. */
const contents = (schema: string) =>
  server.sql(
    `SELECT c.relname, c.relkind, a.attname, c.relfilenode FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     JOIN pg_attribute a ON a.attrelid = c.oid WHERE n.nspname = $1 ORDER BY 1, 3`,
    schema,
  );

async function endCounted(store: PostgresStore, runId: string): Promise<void> {
  const claim = await store.claim(runId, 'me', 60_000);
  if (!claim) throw new Error('held');
  await store.save(sampleRecord(runId), { claim });
  await store.history.end(claim, { outcome: sampleOutcome(runId), keepUntil: Date.now() + 60_000, isCounted: true });
}

const waitingForTime = {
  waiting: { waits: [{ id: 'w', kind: 'timer', createdAt: 1, step: 1 }], settled: [] },
} as const;

describe.skipIf(whyNoPostgres)('the schema of a PostgreSQL store', () => {
  test('constructing a store touches nothing; the tables are made at the first use (recovery 4)', async () => {
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: server.pool(), schema });
    expect(await contents(schema)).toEqual([]);
    expect(await store.load('run')).toBe(null);
    expect((await contents(schema)).length).toBeGreaterThan(0);
  });

  test('of many stores that come first at once, one makes it, and all continue (recovery 4)', async () => {
    const schema = server.freshSchema();
    const stores = Array.from({ length: 8 }, () => postgresStore({ pool: server.pool({ max: 2 }), schema }));
    await Promise.all(stores.map((store, i) => store.save(sampleRecord(`run-${i}`))));
    expect(await stores[0]?.listInterrupted()).toHaveLength(8);
  });

  test('a newer layout is refused, and left as it is (checkpoint 6)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    await postgresStore({ pool, schema }).save(sampleRecord('run'));
    await server.sql(`UPDATE "${schema}".layouts SET layout = layout + 1`);
    const before = await contents(schema);
    await using store = postgresStore({ pool, schema });
    const refusal = { code: 'CHECKPOINT_TOO_NEW', message: expect.stringContaining('upgrade') };
    await expect(store.load('run')).rejects.toMatchObject(refusal);
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(refusal);
    await expect(store.claim('run', 'one', 1_000)).rejects.toMatchObject(refusal);
    expect(await contents(schema)).toEqual(before);
  });

  test('an older layout is brought to this one, with what is in it (checkpoint 6)', async () => {
    const schema = server.freshSchema();
    // Layout 0 is what an interrupted beginning would leave: the table of layouts alone.
    await server.sql(`CREATE SCHEMA "${schema}"`);
    await server.sql(`CREATE TABLE "${schema}".layouts (part text PRIMARY KEY, layout integer NOT NULL)`);
    await server.sql(`INSERT INTO "${schema}".layouts VALUES ('something else', 7)`);
    await using store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('run'));
    expect(await server.sql(`SELECT * FROM "${schema}".layouts ORDER BY part`)).toEqual([
      { part: 'something else', layout: 7 },
      { part: 'store', layout: 11 },
    ]);
  });

  test('the runs of the layout before fair keys are due, and can be taken (checkpoint 6, engine 16)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const before = postgresStore({ pool, schema });
    const agentId = sampleRecord('run').meta.agentId;
    for (const runId of ['run', 'other']) await before.save(sampleRecord(runId));
    await before.close();
    await server.sql(
      `ALTER TABLE "${schema}".runs DROP COLUMN fair, DROP COLUMN agent, DROP COLUMN caller, DROP COLUMN deployment, DROP COLUMN definition, DROP COLUMN paused_by`,
    );
    await server.sql(
      `DROP TABLE "${schema}".last_turn, "${schema}".deliveries, "${schema}".totals, "${schema}".schedules, "${schema}".limits`,
    );
    await server.sql(`UPDATE "${schema}".layouts SET layout = 4 WHERE part = 'store'`);
    await using store = postgresStore({ pool, schema });
    const wish = { owner: 'me', ttlMs: 60_000, limit: 10 };
    expect((await store.due.take({ ...wish, agentIds: ['another'] })).claims).toEqual([]);
    expect((await store.due.list({ limit: 10 })).runs.map(({ attempts }) => attempts)).toEqual([1, 1]);
    await using other = postgresStore({ pool, schema });
    const { claims } = await other.due.take({ ...wish, agentIds: [agentId], version: 3 });
    expect(claims.map(({ runId }) => runId).sort()).toEqual(['other', 'run']);
  });

  test('the runs of the layout before totals stay, and those that end from now on are counted (checkpoint 6)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const before = postgresStore({ pool, schema });
    await endCounted(before, 'before');
    await before.close();
    await server.sql(`DROP TABLE "${schema}".totals, "${schema}".schedules, "${schema}".limits`);
    await server.sql(`ALTER TABLE "${schema}".runs DROP COLUMN paused_by`);
    await server.sql(`UPDATE "${schema}".layouts SET layout = 7 WHERE part = 'store'`);
    await using store = postgresStore({ pool, schema });
    await endCounted(store, 'after');
    expect((await store.history.list({ limit: 10 })).map(({ runId }) => runId).sort()).toEqual(['after', 'before']);
    expect(await store.history.totals?.()).toMatchObject([{ status: 'ok', runs: 1 }]);
  });

  test('the runs of the layout before pauses are counted as other, until their record is written again (checkpoint 6, otel 15)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const before = postgresStore({ pool, schema });
    await before.save(sampleRecord('waits', waitingForTime));
    await before.close();
    await server.sql(`UPDATE "${schema}".runs SET due_at = 9007199254740991`);
    await server.sql(`ALTER TABLE "${schema}".runs DROP COLUMN paused_by`);
    await server.sql(`DROP TABLE "${schema}".schedules, "${schema}".limits`);
    await server.sql(`UPDATE "${schema}".layouts SET layout = 8 WHERE part = 'store'`);
    await using store = postgresStore({ pool, schema });
    expect((await store.due.countRuns()).waiting).toEqual({ other: 1 });
    await store.save(sampleRecord('waits', waitingForTime));
    expect((await store.due.countRuns()).waiting).toEqual({ timer: 1 });
  });

  test('the runs of the layout before schedules stay, and schedules are kept from now on (checkpoint 6, schedules 5)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const before = postgresStore({ pool, schema });
    await before.save(sampleRecord('run'));
    await before.close();
    await server.sql(`DROP TABLE "${schema}".schedules, "${schema}".limits`);
    await server.sql(`UPDATE "${schema}".layouts SET layout = 9 WHERE part = 'store'`);
    await using store = postgresStore({ pool, schema });
    expect(await store.schedules.list()).toEqual([]);
    const none = { count: 0 };
    const schedule = { id: 'nightly', revision: 1, every: '1h', isEnabled: true, definedAt: 1, since: 1 };
    expect(await store.schedules.note({ ...schedule, skipped: none, missed: none, failed: none })).toBe(true);
    expect(await store.load('run')).not.toBeNull();
    expect(await store.schedules.list()).toMatchObject([schedule]);
  });

  test('the runs of the layout before limits stay, and turns are given from now on (checkpoint 6)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const before = postgresStore({ pool, schema });
    await before.save(sampleRecord('run'));
    await before.close();
    await server.sql(`DROP TABLE "${schema}".limits`);
    await server.sql(`UPDATE "${schema}".layouts SET layout = 10 WHERE part = 'store'`);
    await using store = postgresStore({ pool, schema });
    expect((await store.limits.takeTurns([[[{ bucket: 'a', costMs: 1, lagMs: 0 }]]])).turns).toHaveLength(1);
    expect(await store.load('run')).not.toBeNull();
  });

  test('the totals of a day are a row for each end, until the sweep makes one of them; two sweeps at once lose none', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    await using store = postgresStore({ pool, schema });
    for (const runId of ['a', 'b', 'c']) await endCounted(store, runId);
    const rows = () => server.sql(`SELECT runs FROM "${schema}".totals`);
    expect(await rows()).toHaveLength(3);
    await using other = postgresStore({ pool, schema });
    await Promise.all([store.history.forget?.(), other.history.forget?.()]);
    await store.history.forget?.();
    expect(await rows()).toEqual([{ runs: 3 }]);
    expect(await other.history.totals?.()).toMatchObject([{ runs: 3 }]);
  });

  test('tables of something else are refused, and left as they are (recovery 6)', async () => {
    const schema = server.freshSchema();
    await server.sql(`CREATE SCHEMA "${schema}"`);
    await server.sql(`CREATE TABLE "${schema}".messages (id int)`);
    const before = await contents(schema);
    await using store = postgresStore({ pool: server.pool(), schema, timeoutMs: 2_000 });
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining('another schema'),
    });
    expect(await contents(schema)).toEqual(before);
  });

  test('tables that are dropped while a store is open: one refusal, then they are made again (recovery 6)', async () => {
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('run'));
    await server.sql(`DROP SCHEMA "${schema}" CASCADE`);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject(unavailable);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
    await store.save(sampleRecord('run'));
  });

  test.for([
    '',
    'a\0b',
    'x'.repeat(64),
    '😀'.repeat(16),
    '\ud800',
    'pg_catalog',
    'PG_temp',
    'information_schema',
    7,
    null,
  ])('the name %j is refused at once (checkpoint 12)', (schema) => {
    const pool = { connect: () => Promise.reject(), on: () => {}, removeListener: () => {} };
    expect(() => postgresStore({ pool, schema: schema as never })).toThrow(TypeError);
  });

  test.for(['a"; DROP SCHEMA public; --', "it's", 'Größe', 'a.b', '%s $1 \\', '"', 'select', 'x'.repeat(63)])(
    'the name %j is one like any other (checkpoint 12)',
    async (schema) => {
      const pool = server.pool();
      await using store = postgresStore({ pool, schema });
      await store.save(sampleRecord('run'));
      const claim = await store.claim('run', 'one', 60_000);
      await store.append(nextStep(sampleRecord('run')).delta, { claim: claim ?? undefined });
      expect((await store.load('run'))?.revision).toBe(2);
      const [found] = await server.sql('SELECT count(*) FROM pg_namespace WHERE nspname = $1', schema);
      expect(found).toEqual({ count: '1' });
      expect(await server.sql("SELECT nspname FROM pg_namespace WHERE nspname = 'public'")).toHaveLength(1);
    },
  );

  test('a pool that is none is refused at once', () => {
    for (const pool of [undefined, null, {}, 'postgres://here']) {
      expect(() => postgresStore({ pool: pool as never })).toThrow(TypeError);
    }
    expect(() => postgresStore({ pool: new pg.Pool() satisfies PostgresPool, timeoutMs: 0 })).toThrow(TypeError);
  });
});

describe.skipIf(whyNoPostgres || process.env.PAWL_TEST_POSTGRES_URL)('a role without special rights', () => {
  const poolOf = async (role: string, grant: string, schema: string) => {
    await server.sql(`CREATE ROLE ${role} LOGIN`);
    if (grant === 'schema') await server.sql(`CREATE SCHEMA "${schema}" AUTHORIZATION ${role}`);
    if (grant === 'database') await server.sql(`GRANT CREATE ON DATABASE postgres TO ${role}`);
    return server.pool({ connectionString: server.url.replace('pawl@', `${role}@`) });
  };

  test.for(['schema', 'database'])('is enough when it owns the %s, or may create it (recovery 4)', async (grant) => {
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: await poolOf(`role_of_${grant}`, grant, schema), schema });
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'one', 60_000);
    await store.delete('run', { claim: claim ?? undefined });
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('that may not even make the schema reads what it lacks (recovery 6)', async () => {
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: await poolOf('nobody', 'nothing', schema), schema });
    const started = performance.now();
    const refusal = { ...unavailable, message: expect.stringContaining('rights') };
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(refusal);
    await expect(store.load('run')).rejects.toMatchObject(refusal);
    expect(performance.now() - started).toBeLessThan(9_000);
  });

  test('a database that cannot hold every text is refused (checkpoint 2)', async () => {
    await server.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    const pool = server.pool({ connectionString: server.url.replace('/postgres', '/latin') });
    await using store = postgresStore({ pool });
    await expect(store.load('run')).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining('UTF8') });
  });
});
