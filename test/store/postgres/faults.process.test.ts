import pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { serverError } from '../../../src/store/postgres/errors.ts';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { randomFrom, seed } from '../../crash/random.ts';
import { CuttingProxy } from '../../fixtures/cutting-proxy.ts';
import { postgresServer, whyNoOwnPostgres, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool, writing } from '../../fixtures/postgres-trouble.ts';
import { persist } from './persisting.ts';

// A process that dies takes nothing from the disk with it: what was written is there, synced or not.
const server = postgresServer(['fsync=off']);
const unavailable = { code: 'STORE_UNAVAILABLE' };

/** Every method, as hosts call it. */
const calls: Readonly<Record<string, (store: PostgresStore) => Promise<unknown>>> = {
  save: (store) => store.save(sampleRecord('run')),
  append: (store) => store.append(nextStep(sampleRecord('run')).delta),
  load: (store) => store.load('run'),
  listInterrupted: (store) => store.listInterrupted(),
  delete: (store) => store.delete('run'),
  claim: (store) => store.claim('run', 'one', 1_000),
  outcome: (store) => store.outcomes.find('run'),
};

/** Until it comes to this: on a busy machine a first answer may take longer than a hasty store waits for it. */
const inTheEnd = (call: () => Promise<unknown>) =>
  expect.poll(() => call().catch((error: { code?: unknown }) => error.code));

describe.skipIf(whyNoPostgres)('a server that cannot be reached', () => {
  test.concurrent.for(Object.keys(calls))('%s is refused within its time, and says why (recovery 6)', async (name) => {
    const pool = new pg.Pool({ host: '127.0.0.1', port: 1 });
    const store = postgresStore({ pool, timeoutMs: 100 });
    const started = performance.now();
    const refusal = { ...unavailable, message: expect.stringContaining('ECONNREFUSED') };
    await expect(calls[name]?.(store)).rejects.toMatchObject(refusal);
    expect(performance.now() - started).toBeGreaterThan(90);
    expect(performance.now() - started).toBeLessThan(9_000);
    await pool.end();
  });

  test('many calls that wait at once are refused together, not one after the other (recovery 7)', async () => {
    const pool = new TroubledPool(server.pool());
    const schema = server.freshSchema();
    await postgresStore({ pool, schema }).load('run');
    const store = postgresStore({ pool, schema, timeoutMs: 200 });
    pool.fate = () => 'unanswered';
    const started = performance.now();
    const loads = Array.from({ length: 60 }, (_, i) => store.load(`run-${i}`));
    const saves = Array.from({ length: 400 }, (_, i) => store.save(sampleRecord(`run ${i}`)));
    const settled = await Promise.allSettled([...loads, ...saves]);
    for (const each of settled) expect(each).toMatchObject({ reason: unavailable });
    // One after the other they would take 90 s.
    expect(performance.now() - started).toBeLessThan(30_000);
    pool.fate = () => 'fine';
    await inTheEnd(() => store.load('run')).toBe(null);
    await inTheEnd(() => store.save(sampleRecord('run'))).toBe(undefined);
  });

  test('a pool that is exhausted: calls are refused within their time, and no call waits any more (recovery 6)', async () => {
    const pool = server.pool({ max: 1 });
    const schema = server.freshSchema();
    await postgresStore({ pool, schema }).save(sampleRecord('run'));
    const store = postgresStore({ pool, schema, timeoutMs: 200 });
    const taken = await pool.connect();
    const settled = await Promise.allSettled(Object.values(calls).map((call) => call(store)));
    for (const each of settled) expect(each).toMatchObject({ reason: unavailable });
    taken.release();
    await inTheEnd(() => store.load('run')).toEqual(sampleRecord('run'));
    await inTheEnd(() => store.save(sampleRecord('run', { revision: 2 }))).toBe(undefined);
    await inTheEnd(async () => [pool.waitingCount, pool.totalCount - pool.idleCount]).toEqual([0, 0]);
  });

  test('a pool that has ended is refused at once, not after the time for trying (recovery 6)', async () => {
    const pool = server.pool();
    const store = postgresStore({ pool, schema: server.freshSchema() });
    await store.save(sampleRecord('run'));
    await pool.end();
    const started = performance.now();
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
    expect(performance.now() - started).toBeLessThan(9_000);
  });

  test('a store that was closed refuses every call, and leaves the pool to the host (recovery 4)', async () => {
    const pool = server.pool();
    const store = postgresStore({ pool, schema: server.freshSchema() });
    await store.save(sampleRecord('run'));
    const last = store.save(sampleRecord('run', { iteration: 1 }));
    await store.close();
    await last;
    await store.close();
    for (const call of Object.values(calls)) await expect(call(store)).rejects.toMatchObject(unavailable);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(pool.listenerCount('error')).toBe(0);
    await pool.end();
  });

  test('an answer that never comes: the connection is given up, and another one gets it (recovery 7)', async () => {
    const pool = new TroubledPool(server.pool());
    const schema = server.freshSchema();
    await postgresStore({ pool, schema }).save(sampleRecord('run'));
    const store = postgresStore({ pool, schema, timeoutMs: 300 });
    pool.fate = (text) => (writing.test(text) ? 'unanswered' : 'fine');
    await expect(store.save(sampleRecord('run', { revision: 2 }))).rejects.toMatchObject(unavailable);
    pool.fate = () => 'unanswered';
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    pool.fate = () => 'fine';
    await inTheEnd(async () => pool.out).toBe(0);
    await inTheEnd(() => store.load('run')).toMatchObject({ revision: 1 });
    await inTheEnd(() => store.save(sampleRecord('run', { revision: 3 }))).toBe(undefined);
    await inTheEnd(() => store.load('run')).toMatchObject({ revision: 3 });
  });

  test('a row that another transaction keeps locked holds up no other run (recovery 7)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const store = postgresStore({ pool, schema, timeoutMs: 1_500 });
    for (const runId of ['run', 'other']) await store.save(sampleRecord(runId));
    const locker = await pool.connect();
    await locker.query(`BEGIN; SELECT * FROM "${schema}".runs WHERE run_id = 'run' FOR UPDATE`);
    const waiting = store.append(nextStep(sampleRecord('run')).delta);
    await store.append(nextStep(sampleRecord('other')).delta);
    await expect(waiting).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining('locked') });
    await locker.query('ROLLBACK');
    locker.release();
    await store.append(nextStep(sampleRecord('run')).delta);
  });

  test.for([
    ['53100', 'STORE_FULL'],
    ['54000', 'RECORD_TOO_LARGE'],
    ['XX001', 'CHECKPOINT_CORRUPT'],
    ['XX002', 'CHECKPOINT_CORRUPT'],
    ['57P01', 'STORE_UNAVAILABLE'],
    ['25006', 'STORE_UNAVAILABLE'],
    ['42501', 'STORE_UNAVAILABLE'],
    ['28P01', 'STORE_UNAVAILABLE'],
    ['40P01', 'STORE_UNAVAILABLE'],
    ['XX000', 'STORE_UNAVAILABLE'],
  ] as const)('SQLSTATE %s of the server is %s (recovery 6)', ([state, code]) => {
    const cause = Object.assign(new Error('of the server'), { code: state, severity: 'ERROR', detail: 'row (secret)' });
    const seen = serverError(cause, 'the store');
    expect(seen).toMatchObject({ code, cause: { message: 'of the server', code: state } });
    expect((seen as { cause: object }).cause).not.toHaveProperty('detail');
  });
});

describe.skipIf(whyNoOwnPostgres)('connections that break in the middle', () => {
  test(`at any byte, either way: nothing is lost, nothing comes twice (seed ${seed}) (faults 40, recovery 4)`, async ({
    onTestFinished,
  }) => {
    const proxy = new CuttingProxy(server, randomFrom(seed));
    await proxy.listen();
    onTestFinished(() => proxy.close());
    const pool = server.pool({ connectionString: server.url.replace(String(server.port), String(proxy.port)) });
    const store = postgresStore({ pool, schema: server.freshSchema() });
    await store.load('run');
    proxy.chance = 0.1;
    await persist(store, { runs: 8, steps: 40 });
    expect(proxy.cuts['to the server'], `seed ${seed}`).toBeGreaterThan(3);
    expect(proxy.cuts['from the server'], `seed ${seed}`).toBeGreaterThan(3);
  });

  test('because the server ends them: each write is sent again and stored once (recovery 4)', async ({
    onTestFinished,
  }) => {
    const pool = server.pool();
    const store = postgresStore({ pool, schema: server.freshSchema() });
    await store.load('run');
    let killed = 0;
    const end = setInterval(async () => {
      const rows = await server
        .sql(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .catch(() => []);
      killed += rows.length;
      // On a busy machine a connection may take longer than the time between two ends: none would ever get through.
      if (killed > 50) clearInterval(end);
    }, 100);
    onTestFinished(() => clearInterval(end));
    await persist(store, { runs: 8, steps: 40 });
    clearInterval(end);
    expect(killed).toBeGreaterThan(3);
  });

  test.for(['SIGKILL', 'SIGQUIT'] as const)(
    'because the server dies by %s and starts again: nothing is lost, nothing comes twice (recovery 4)',
    async (signal) => {
      const pool = server.pool();
      const store = postgresStore({ pool, schema: server.freshSchema() });
      await store.load('run');
      let deaths = 0;
      let isDone = false;
      const persisting = persist(store, { runs: 8, steps: 60 }).finally(() => {
        isDone = true;
      });
      while (!isDone && deaths < 2) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        await server.kill(signal);
        await server.start();
        if (!isDone) deaths += 1;
      }
      await persisting;
      expect(deaths).toBeGreaterThan(0);
    },
  );

  test('and stay broken for longer than a call is tried: refused, and what was stored is there afterwards (recovery 7)', async () => {
    const [pool, schema] = [server.pool(), server.freshSchema()];
    const patient = postgresStore({ pool, schema });
    const claim = (await patient.claim('run', 'one', 600_000)) as Claim;
    await patient.save(sampleRecord('run'), { claim });
    const store = postgresStore({ pool, schema, timeoutMs: 100 });
    await server.kill();
    const step = nextStep(sampleRecord('run'));
    const settled = await Promise.allSettled([
      store.append(step.delta, { claim }),
      store.load('run'),
      store.renew(claim, 600_000),
      store.claim('other', 'one', 1_000),
    ]);
    for (const each of settled) expect(each).toMatchObject({ reason: unavailable });
    await server.start();
    await inTheEnd(() => store.load('run')).toEqual(sampleRecord('run'));
    await patient.append(step.delta, { claim });
    expect(await patient.load('run')).toEqual(step.record);
  });
});
