import { postgresStore } from 'pawl/stores/postgres';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { TroubledPool } from '../fixtures/postgres-trouble.ts';

const server = postgresServer(['fsync=off']);
const none = { count: 0 };
const scheduleOf = (revision: number, lastRunId: string) => {
  const counts = { skipped: none, missed: none, failed: none };
  return { id: 'nightly', revision, every: '1h', isEnabled: true, definedAt: 1, since: 1, lastRunId, ...counts };
};
const runOf = (runId: string) => ({ record: sampleRecord(runId, { attempts: 0 }) });

describe.skipIf(whyNoPostgres)('a tick in PostgreSQL', () => {
  const open = () => {
    const pool = new TroubledPool(server.pool());
    return { pool, store: postgresStore({ pool, schema: server.freshSchema(), timeoutMs: 5_000 }) };
  };

  test.for([
    ['INSERT of its row', /INSERT INTO "[^"]+"\.schedules/],
    ['COMMIT', /^COMMIT/],
  ] as const)(
    'whose answer to the %s gets lost is noted once, with one run, and by this process (schedules 2, 7, faults 40)',
    async ([, pattern]) => {
      for (const fates of [['lost'], ['unsent'], ['lost', 'unsent', 'lost']] as const) {
        const { pool, store } = open();
        await store.schedules.note(scheduleOf(1, ''));
        pool.next(pattern, ...fates);
        expect(await store.schedules.note(scheduleOf(2, 'a'), runOf('a'))).toBe(true);
        expect(pool.fired).toBeGreaterThan(0);
        expect(await store.schedules.list()).toEqual([scheduleOf(2, 'a')]);
        expect((await store.due.list({ limit: 5 })).runs.map(({ runId }) => runId)).toEqual(['a']);
        // An equal write of another process is not taken for this one.
        expect(await store.schedules.note(scheduleOf(2, 'a'), runOf('a'))).toBe(false);
        await store.close();
      }
    },
  );
});
