import { describe, expect, test } from 'vitest';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);

describe.skipIf(whyNoPostgres)('a store in PostgreSQL that is open for reading only (studio 17)', () => {
  test('makes no schema, reads in a session that may not write, and refuses each write', async () => {
    const schema = server.freshSchema();
    const clock = testClock();
    const pool = server.pool({ options: '-c default_transaction_read_only=on' });
    await using reader = postgresStore({ pool, schema, clock, readOnly: true });
    await expect(reader.listInterrupted()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: `the PostgreSQL store in schema ${schema} does not exist`,
    });
    await using writer = postgresStore({ pool: server.pool(), schema, clock });
    await writer.save(sampleRecord('run'));
    await writer.outcomes.keep('run', sampleOutcome('run'), clock.now() + 1_000);
    expect(await reader.listInterrupted()).toMatchObject([{ runId: 'run' }]);
    expect(await reader.load('run')).toEqual(await writer.load('run'));
    expect(await reader.due.list({ limit: 10 })).toMatchObject({ runs: [{ runId: 'run' }] });
    expect([await reader.history.list({ limit: 10 }), await reader.threads.list()]).toEqual([[], []]);
    expect(await reader.outcomes.find('run')).toMatchObject({ runId: 'run' });
    await clock.advance(2_000);
    expect(await reader.outcomes.find('run')).toBeNull();
    await expect(reader.save(sampleRecord('other'))).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await expect(reader.claim('run', 'me', 1_000)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });

  test('names an older layout, and leaves it', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    const writer = postgresStore({ pool, schema });
    await writer.save(sampleRecord('run'));
    await writer.close();
    await pool.query(`UPDATE "${schema}".layouts SET layout = 1`);
    await using reader = postgresStore({ pool, schema, readOnly: true });
    await expect(reader.listInterrupted()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('has layout 1, and this Pawl reads layout'),
    });
    const { rows } = await pool.query(`SELECT layout FROM "${schema}".layouts`);
    expect(rows).toEqual([{ layout: 1 }]);
  });
});
