import type { JournalEntry } from 'pawl/stores/kit';
import { afterEach, describe, expect, test } from 'vitest';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool } from '../../fixtures/postgres-trouble.ts';
import { emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();

const entry = (place: number, keep: 'kept' | 'passing', text = 'x'): JournalEntry => ({
  ...{ place, keep },
  event: { type: 'model.delta', step: 1, kind: 'text', block: 0, offset: 0, text, runId: 'run', seq: place, at: 1 },
});

async function begun(store: PostgresStore, runId = 'run') {
  const claim = await store.claim(runId, 'me', 600_000);
  if (!claim) throw new Error('no claim');
  await store.save(sampleRecord(runId), { claim });
  return claim;
}

describe.skipIf(whyNoPostgres)('the journal in PostgreSQL', () => {
  afterEach(() => emptyTables(server, schema));

  test('publishing does not wait for the disk, and a save with events does (web 1, 2)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema });
    const claim = await begun(store);
    await server.sql(`CREATE TABLE IF NOT EXISTS "${schema}".seen (no serial, setting text)`);
    await server.sql(`CREATE OR REPLACE FUNCTION "${schema}".note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO "${schema}".seen (setting) VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`);
    for (const table of ['journal', 'passing'])
      await server.sql(`CREATE TRIGGER note AFTER INSERT ON "${schema}".${table} EXECUTE FUNCTION "${schema}".note()`);
    const settings = async () =>
      (await server.sql(`SELECT setting FROM "${schema}".seen ORDER BY no`)).map((row) => row.setting);
    await store.journal.publish('run', [entry(1, 'passing')], { claim });
    const quick = await settings();
    expect(new Set(quick)).toEqual(new Set(['off']));
    const { delta } = nextStep(sampleRecord('run'));
    await store.append(delta, { claim, events: { entries: [entry(2, 'kept')], dropTo: 1 } });
    expect(new Set((await settings()).slice(quick.length))).toEqual(new Set(['on']));
    for (const table of ['journal', 'passing']) await server.sql(`DROP TRIGGER note ON "${schema}".${table}`);
  });

  test('the reads of one turn are one statement for 64 runs, for any callers (web 7)', async () => {
    const pool = new TroubledPool(server.pool());
    const { statements } = pool;
    await using store = postgresStore({ pool, schema });
    const ids = Array.from({ length: 60 }, (_, i) => `run-${i}`);
    for (const runId of ids) await begun(store, runId);
    statements.length = 0;
    const pages = await Promise.all(ids.map((runId) => store.journal.read(runId, { limit: 500 })));
    expect(pages.every((page) => page?.next === 0)).toBe(true);
    expect(statements).toHaveLength(1);
  });

  test('the events of an append take no statement of their own (web 38)', async () => {
    const pool = new TroubledPool(server.pool());
    const { statements } = pool;
    await using store = postgresStore({ pool, schema });
    const claim = await begun(store);
    let record = sampleRecord('run');
    for (let place = 1; place < 20; place += 2) {
      await store.journal.publish('run', [entry(place, 'passing')], { claim });
      statements.length = 0;
      const next = nextStep(record);
      await store.append(next.delta, { claim, events: { entries: [entry(place + 1, 'kept')], dropTo: place } });
      record = next.record;
      expect(statements).toHaveLength(1);
    }
    expect((await store.journal.read('run', { limit: 100 }))?.entries).toHaveLength(10);
  });

  test('an append replaces a kept event of the same place that was published before it (web 1)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema });
    const claim = await begun(store);
    await store.journal.publish('run', [entry(2, 'kept', 'before')], { claim });
    const { delta } = nextStep(sampleRecord('run'));
    await store.append(delta, { claim, events: { entries: [entry(1, 'kept', 'one'), entry(2, 'kept', 'after')] } });
    const page = await store.journal.read('run', { limit: 10 });
    expect(page?.entries.map(({ event }) => 'text' in event && event.text)).toEqual(['one', 'after']);
    expect((await store.load('run'))?.revision).toBe(delta.revision);
  });

  test('a run that another transaction has locked is published later; the others of its turn are not kept waiting (web 2)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema });
    const claim = await begun(store);
    const other = await begun(store, 'other');
    const holder = await server.pool().connect();
    await holder.query('BEGIN');
    await holder.query(`SELECT FROM "${schema}".runs WHERE run_id = 'run' FOR UPDATE`);
    let isDone = false;
    const locked = store.journal.publish('run', [entry(1, 'passing')], { claim }).then(() => {
      isDone = true;
    });
    await store.journal.publish('other', [entry(1, 'passing')], { claim: other });
    await store.journal.publish('other', [entry(2, 'passing')], { claim: other });
    expect((await store.journal.read('other', { limit: 9 }))?.next).toBe(2);
    expect(isDone).toBe(false);
    await holder.query('COMMIT');
    holder.release();
    await locked;
    expect((await store.journal.read('run', { limit: 9 }))?.next).toBe(1);
  });

  test('a damaged row is found, and read by no reader; other journals are read (web 6)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema });
    const claim = await begun(store);
    const other = await begun(store, 'other');
    await store.journal.publish('run', [entry(1, 'kept')], { claim });
    await store.journal.publish('other', [entry(1, 'kept')], { claim: other });
    await server.sql(
      `UPDATE "${schema}".journal SET entries = replace(entries, 'model', 'modem') WHERE run_id = 'run'`,
    );
    const [bad, good] = await Promise.allSettled([
      store.journal.read('run', { limit: 9 }),
      store.journal.read('other', { limit: 9 }),
    ]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'CHECKPOINT_CORRUPT' } });
    expect(good).toMatchObject({ status: 'fulfilled', value: { next: 1 } });
  });

  test('calls while the server is away are refused in time, and nothing of them stays open (web 36)', async () => {
    const dead = { connect: () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })) };
    const pool = { ...dead, on: () => {}, removeListener: () => {} } as never;
    await using store = postgresStore({ pool, schema, timeoutMs: 600 });
    const claim = { runId: 'run', owner: 'me', epoch: 1, attempts: 1 };
    const refused = { code: 'STORE_UNAVAILABLE' };
    await Promise.all([
      expect(store.journal.publish('run', [entry(1, 'kept')], { claim })).rejects.toMatchObject(refused),
      expect(store.journal.read('run', { limit: 1 })).rejects.toMatchObject(refused),
    ]);
  });
});
