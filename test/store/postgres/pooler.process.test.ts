import { describe, expect, onTestFinished, test } from 'vitest';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import type { Claim } from '../../../src/store/port.ts';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { PostgresPooler } from '../../fixtures/postgres-pooler.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool } from '../../fixtures/postgres-trouble.ts';

const server = postgresServer(['fsync=off']);

/** A run that `one` has claimed and saved. */
async function begun(store: PostgresStore, runId: string): Promise<{ claim: Claim; record: RunCheckpoint }> {
  const claim = (await store.claim(runId, 'one', 60_000)) as Claim;
  const record = sampleRecord(runId, { attempts: claim.attempts });
  await store.save(record, { claim });
  return { claim, record };
}

/** Adds some steps, one after the other. @returns the record that should be there then */
async function addSteps(store: PostgresStore, { claim, record }: Awaited<ReturnType<typeof begun>>, steps: number) {
  let last = record;
  for (let step = 0; step < steps; step++) {
    const next = nextStep(last);
    await store.append(next.delta, { claim });
    last = next.record;
  }
  return last;
}

describe.skipIf(whyNoPostgres)('the statement of a step', () => {
  test('is always the same one, which the server keeps by its name: nothing is looked up, and nothing parsed again (recovery 4)', async () => {
    const real = server.pool({ max: 1 });
    const pool = new TroubledPool(real);
    await using store = postgresStore({ pool, schema: server.freshSchema() });
    const run = await begun(store, 'run');
    pool.statements.length = 0;
    const record = await addSteps(store, run, 20);
    expect(pool.statements).toHaveLength(20);
    expect(new Set(pool.statements).size).toBe(1);
    const kept = await real.query('SELECT statement FROM pg_prepared_statements');
    expect(kept.rows).toEqual([{ statement: pool.statements[0] }]);
    expect(await store.load('run')).toEqual(record);
  });

  test('is another one in another schema: two stores share a connection, and each writes to its own tables (recovery 4)', async () => {
    const pool = server.pool({ max: 1 });
    let connections = 0;
    pool.on('connect', () => connections++);
    await using first = postgresStore({ pool, schema: server.freshSchema() });
    await using second = postgresStore({ pool, schema: server.freshSchema() });
    const inFirst = await addSteps(first, await begun(first, 'run'), 3);
    const inSecond = await addSteps(second, await begun(second, 'run'), 5);
    expect(await first.load('run')).toEqual(inFirst);
    expect(await second.load('run')).toEqual(inSecond);
    // None was given up because it knew the name of another statement.
    expect(connections).toBe(1);
  });

  test('goes without a name once the server has forgotten it, because the host said `DISCARD ALL` (recovery 4)', async () => {
    const pool = server.pool({ max: 1 });
    await using store = postgresStore({ pool, schema: server.freshSchema() });
    const { claim, record } = await begun(store, 'run');
    const before = await addSteps(store, { claim, record }, 2);
    await pool.query('DISCARD ALL');
    const after = await addSteps(store, { claim, record: before }, 2);
    expect(await store.load('run')).toEqual(after);
    expect((await pool.query('SELECT FROM pg_prepared_statements')).rowCount).toBe(0);
  });

  test('behind a pooler that gives each statement another connection: stored once, and soon sent without a name (recovery 4)', async () => {
    const pooler = new PostgresPooler();
    await pooler.open(server.url, 2);
    onTestFinished(() => pooler.close());
    const schema = server.freshSchema();
    // The first statements of later hosts come to connections that know them already.
    const stores = Array.from({ length: 4 }, () => postgresStore({ pool: pooler.pool(), schema }));
    for (const [i, store] of stores.entries()) {
      const record = await addSteps(store, await begun(store, `run-${i}`), 6);
      expect(await store.load(`run-${i}`)).toEqual(record);
    }
    expect(new Set(pooler.refusals)).toEqual(new Set(['26000', '42P05']));
    const named = pooler.names.length;
    for (const [i, store] of stores.entries()) await addSteps(store, await begun(store, `more-${i}`), 4);
    expect(pooler.names).toHaveLength(named);
  });
});
