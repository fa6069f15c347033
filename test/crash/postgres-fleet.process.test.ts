import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { PostgresFleet } from './postgres-fleet.ts';
import { torture } from './random.ts';

const isTorture = torture > 1;
const server = postgresServer(['fsync=off', 'max_connections=200']);
const limit = { timeout: 90_000 * torture };

/** The ids of the runs, as many times as each was named. */
const idsIn = (lines: readonly (readonly string[])[]) => lines.map(([runId = '']) => runId);

describe.skipIf(whyNoPostgres)('a fleet of processes on PostgreSQL', () => {
  const [processes, runs] = isTorture ? [8, 2_000] : [2, 100];

  test(
    `${processes} processes take ${runs} due runs: each is taken and worked on once, and no claim is refused (engine 16, 43)`,
    limit,
    async () => {
      await using fleet = new PostgresFleet(server, { steps: 1, modelMs: 20, leaseMs: 30_000 });
      const workers = Array.from({ length: processes }, () => fleet.begin());
      await fleet.until('all processes begin', () => fleet.lines('began').length === processes);
      await Promise.all(Array.from({ length: runs }, () => fleet.admit()));
      await fleet.until('all runs end', () => fleet.ended() === runs, 60_000 * torture);

      const taken = fleet.lines('taken');
      expect(new Set(idsIn(taken)).size).toBe(runs);
      expect(taken).toHaveLength(runs);
      expect(new Set(taken.map(([, , , pid]) => pid)).size).toBe(processes);
      expect(fleet.lines('called')).toHaveLength(runs);
      expect(fleet.lines('ended')).toHaveLength(runs);
      expect(fleet.lines('claimed')).toEqual([]);
      expect(await fleet.store.listInterrupted()).toEqual([]);
      expect(await Promise.all(workers.map((worker) => fleet.terminate(worker)))).toEqual(workers.map(() => 0));
    },
  );
});
