import { existsSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { newOwner } from '../../../src/store/owner.ts';
import type { Claim } from '../../../src/store/port.ts';
import { type PostgresPool, type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { eventually } from '../../fixtures/eventually.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { expectStranger } from '../same-host-name.ts';
import { emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();
let pool: PostgresPool;

beforeAll(() => {
  pool = server.pool();
});

describe.skipIf(whyNoPostgres)('time in the PostgreSQL store', () => {
  const stores: PostgresStore[] = [];
  const create = (clock = testClock(1_000_000)) => {
    const store = postgresStore({ pool, schema, clock });
    stores.push(store);
    return { clock, store };
  };
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await emptyTables(server, schema);
  });

  test('a lease ends exactly when its time is over (recovery 3)', async () => {
    const { clock, store } = create();
    await store.claim('run', 'one', 1_000);
    await clock.advance(999);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await clock.advance(1);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });

  test('expired outcomes are removed within the minute, while nothing else happens', async () => {
    const { clock, store } = create();
    const outcomes = async () => (await server.sql(`SELECT 1 FROM ${schema}.outcomes`)).length;
    await store.outcomes.keep('over', sampleOutcome('over'), clock.now() + 30_000);
    await store.outcomes.keep('later', sampleOutcome('later'), clock.now() + 3_600_000);
    expect(await outcomes()).toBe(2);
    await clock.advance(60_000);
    await eventually(async () => expect(await outcomes()).toBe(1), 50);
    expect(await store.outcomes.find('later')).not.toBeNull();
  });

  test('a renewal is measured from when it is made (recovery 3)', async () => {
    const { clock, store } = create();
    const claim = (await store.claim('run', 'one', 1_000)) as Claim;
    await clock.advance(900);
    await store.renew(claim, 1_000);
    await clock.advance(999);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await clock.advance(1);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });

  test('a save neither ends a lease nor makes it longer (recovery 3)', async () => {
    const { clock, store } = create();
    const claim = (await store.claim('run', 'one', 1_000)) as Claim;
    await clock.advance(900);
    await store.save(sampleRecord('run'), { claim });
    await clock.advance(99);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await clock.advance(1);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });

  test('a wall clock of this host that jumps does nothing to a lease: it is the server that measures (recovery 3)', async () => {
    await using store = postgresStore({ pool, schema });
    const claim = (await store.claim('run', 'one', 60_000)) as Claim;
    const real = Date.now();
    const spy = vi.spyOn(Date, 'now').mockReturnValue(real + 86_400_000);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    spy.mockReturnValue(0);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await store.renew(claim, 60_000);
    spy.mockRestore();
    const [row] = await server.sql(
      `SELECT expires_at - extract(epoch FROM now()) * 1000 AS left FROM "${schema}".runs WHERE run_id = 'run'`,
    );
    expect(Number(row?.left)).toBeGreaterThan(50_000);
    expect(Number(row?.left)).toBeLessThan(60_001);
  });

  test('an outcome is kept until its time is over, by the wall clock (checkpoint 8)', async () => {
    const { clock, store } = create(testClock(1_000));
    await store.outcomes.keep('a', sampleOutcome('a'), 2_000);
    await store.outcomes.keep('b', sampleOutcome('b'), 3_000);
    await clock.advance(999);
    expect(await store.outcomes.find('a')).toEqual(sampleOutcome('a'));
    await clock.advance(1);
    expect(await store.outcomes.find('a')).toBe(null);
    expect(await store.outcomes.find('b')).toEqual(sampleOutcome('b'));
    clock.wallJump(-1_000);
    expect(await store.outcomes.find('a')).toBe(null);
  });

  test('outcomes whose time is over leave the tables (checkpoint 8)', async () => {
    const { clock, store } = create(testClock(1_000));
    for (const runId of ['a', 'b']) await store.outcomes.keep(runId, sampleOutcome(runId), 2_000);
    await clock.advance(1_000);
    await Promise.all(['a', 'c'].map((runId) => store.outcomes.keep(runId, sampleOutcome(runId), 3_000)));
    const rows = await server.sql(`SELECT convert_from(run_id, 'UTF8') AS id FROM "${schema}".outcomes ORDER BY 1`);
    expect(rows).toEqual([{ id: 'a' }, { id: 'c' }]);
  });

  test('released claims of runs without a record are forgotten in the end (recovery 3)', async () => {
    const { clock, store } = create();
    for (const runId of ['a', 'b', 'dead', 'held']) {
      const claim = (await store.claim(runId, 'one', runId === 'held' ? 1e9 : 1_000)) as Claim;
      if (runId === 'b') await store.save(sampleRecord('b'), { claim });
      if (runId === 'a' || runId === 'b') await store.release(claim);
    }
    await clock.advance(2 * 86_400_000);
    const { store: next } = create(clock);
    await next.claim('c', 'one', 1_000);
    const rows = await server.sql(`SELECT convert_from(run_id, 'UTF8') AS id FROM "${schema}".runs ORDER BY 1`);
    expect(rows.map(({ id }) => id)).toEqual(['b', 'c', 'held']);
  });

  test.skipIf(!existsSync('/proc/self/stat'))(
    'an owner that is certainly dead holds nothing (recovery 3)',
    async () => {
      await using store = postgresStore({ pool, schema });
      const [host, boot, namespace, pid, , nonce] = newOwner().split('|');
      const claim = await store.claim('run', [host, boot, namespace, pid, '1', nonce].join('|'), 600_000);
      await store.save(sampleRecord('run'));
      expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
      expect(await store.claim('run', newOwner(), 600_000)).toMatchObject({ epoch: 2, attempts: 2 });
      const late = store.save(sampleRecord('run'), { claim: claim ?? undefined });
      await expect(late).rejects.toMatchObject({ code: 'LEASE_LOST' });
    },
  );

  test.skipIf(!existsSync('/proc/self/stat'))(
    'the run of a live owner on another machine of the same host name is not taken from it before its lease is over (recovery 3)',
    async () => {
      const { clock, store } = create();
      await expectStranger(store, clock);
    },
  );

  test('an owner may be any string (recovery 3)', async () => {
    await using store = postgresStore({ pool, schema });
    await store.save(sampleRecord('run'));
    for (const owner of ['', 'a\0b', '\ud800', '"', "'; --", 'x'.repeat(5_000)]) {
      const claim = (await store.claim('run', owner, 60_000)) as Claim;
      expect(claim.owner).toBe(owner);
      expect(await store.listInterrupted()).toMatchObject([{ owner }]);
      await store.save(sampleRecord('run'), { claim });
      await store.release(claim);
    }
  });
});
