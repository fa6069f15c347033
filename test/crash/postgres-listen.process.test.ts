import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { PostgresFleet } from './postgres-fleet.ts';

const server = postgresServer(['fsync=off']);
/** A poll comes after 8 minutes, 80 % of this, at the earliest: no test waits for it. */
const DUE_MS = 600_000;
/** Long before a poll, also on a machine that is busy. */
const SOON_MS = 50_000;

/** The process ids, at the server, of the connections that listen for the runs of a fleet. */
async function listening({ schema }: PostgresFleet): Promise<readonly number[]> {
  const rows = await server.sql(
    "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN %' AND state = 'idle'",
    schema,
  );
  return rows.map(({ pid }) => Number(pid));
}

describe.skipIf(whyNoPostgres)('a process that listens for due runs and polls each ten minutes', () => {
  test('begins a run that another process admits long before its next poll, and connects again when its connection is lost: also the runs that were admitted meanwhile begin (engine 15)', async () => {
    await using fleet = new PostgresFleet(server, { dueMs: DUE_MS, listens: true });
    const isEnded = (runId: string) => fleet.lines('ended').some(([ended]) => ended === runId);
    const admitAndEnd = async () => {
      const runId = await fleet.admit();
      await fleet.until(`${runId} ends`, () => isEnded(runId), SOON_MS);
    };
    const begun = performance.now();
    // The tables are there before the first look.
    await fleet.store.due.list({ limit: 1 });
    const worker = fleet.begin();
    await fleet.until('it listens', async () => (await listening(fleet)).length === 1, SOON_MS);
    // The looks that follow its begin, and that of LISTEN, are over.
    await sleep(200);
    await admitAndEnd();
    await admitAndEnd();

    const [lost] = await listening(fleet);
    await server.sql('SELECT pg_terminate_backend($1)', lost);
    await admitAndEnd();
    const [again] = await listening(fleet);
    expect(again).toBeGreaterThan(0);
    expect(again).not.toBe(lost);
    await sleep(200);
    await admitAndEnd();
    expect(performance.now() - begun, 'no poll has come').toBeLessThan(0.8 * DUE_MS);
    expect(await fleet.terminate(worker)).toBe(0);
  });
});
