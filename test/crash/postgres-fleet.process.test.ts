import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { postgresServer, whyNoOwnPostgres, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { PostgresFleet, type Repeat, repeatsIn } from './postgres-fleet.ts';
import { randomFrom, seed, torture } from './random.ts';

const isTorture = torture > 1;
const server = postgresServer(['fsync=off', 'max_connections=200']);
const limit = { timeout: 90_000 * torture };

/** The ids of the runs, as many times as each was named. */
const idsIn = (lines: readonly (readonly string[])[]) => lines.map(([runId = '']) => runId);

describe.skipIf(whyNoPostgres)('a fleet of processes on PostgreSQL', () => {
  const [processes, runs] = isTorture ? [8, 2_000] : [2, 40];

  test(
    `${processes} processes take ${runs} due runs: each is taken and worked on once, and no claim is refused (engine 16, 43)`,
    limit,
    async () => {
      await using fleet = new PostgresFleet(server, { steps: 1, modelMs: 20, leaseMs: 30_000 });
      const workers = Array.from({ length: processes }, () => fleet.begin());
      await fleet.until('all processes begin', () => fleet.lines('began').length === processes);
      await fleet.admitAll(runs);
      await fleet.until('all runs end', () => fleet.ended() === runs, 60_000 * torture);

      const taken = fleet.lines('taken');
      expect(new Set(idsIn(taken)).size).toBe(runs);
      expect(taken).toHaveLength(runs);
      expect(new Set(taken.map(([, , , pid]) => pid)).size).toBe(processes);
      expect(fleet.lines('called')).toHaveLength(runs);
      expect(fleet.lines('ended')).toHaveLength(runs);
      expect(fleet.lines('claimed')).toEqual([]);
      await fleet.until('no record is left', async () => (await fleet.store.listInterrupted()).length === 0);
      expect(await Promise.all(workers.map((worker) => fleet.terminate(worker)))).toEqual(workers.map(() => 0));
    },
  );

  const replaced = isTorture ? 20 : 2;

  test(
    `${replaced} processes of a version are replaced by a higher one under load: no attempt is counted, no run is parked, and none is on the lower version after the higher one (engine 18, 45)`,
    limit,
    async () => {
      // Short slices: each run is due several times while both versions take runs.
      await using fleet = new PostgresFleet(server, {
        steps: 6,
        modelMs: isTorture ? 25 : 60,
        leaseMs: 30_000,
        budgetMs: 60,
      });
      const workers = Array.from({ length: processes }, () => fleet.begin(1));
      await fleet.until('all processes begin', () => fleet.lines('began').length === processes);
      let isDeployed = false;
      let admitted = 0;
      const load = (async () => {
        for (; !isDeployed; await sleep(20)) {
          for (let due = admitted - fleet.ended(); due < (isTorture ? 6 : 3) * processes; due++, admitted++)
            await fleet.admit();
        }
      })();
      const codes: (number | null)[] = [];
      for (let n = 0; n < replaced; n++) {
        const version = 2 + Math.floor(n / processes);
        const isTaking = (of: number) =>
          new Set(fleet.lines('taken').flatMap(([, by, , pid]) => (Number(by) === of ? [pid] : [])));
        const before = isTaking(version).size;
        workers.push(fleet.begin(version));
        await fleet.until('the new process takes runs', () => isTaking(version).size > before);
        const old = workers.shift();
        if (old) codes.push(await fleet.terminate(old));
      }
      isDeployed = true;
      await load;
      await fleet.until('all runs end', () => fleet.ended() === admitted);

      expect(codes.filter((code) => code !== 0)).toEqual([]);
      const taken = fleet.lines('taken');
      expect(new Set(taken.map(([, , attempts]) => attempts))).toEqual(new Set(['1']));
      const byRun = [...Map.groupBy(taken, ([runId]) => runId).values()].map((lines) =>
        lines.map(([, version]) => Number(version)),
      );
      expect(byRun.filter((versions) => versions.some((version, i) => version < (versions[i - 1] ?? 0)))).toEqual([]);
      expect(byRun.filter((versions) => new Set(versions).size > 1).length, 'runs of two versions').toBeGreaterThan(0);
      expect(fleet.lines('ended').filter(([, , status]) => status !== 'ok')).toEqual([]);
      expect(repeatsIn(fleet.ledger())).toEqual([]);
      await fleet.until('no record is left', async () => (await fleet.store.listInterrupted()).length === 0);
    },
  );
});

type Blow = 'kill' | 'stop' | 'server';
const LEASE_MS = 1_500;

describe.skipIf(whyNoOwnPostgres)('a fleet of processes on PostgreSQL, and what befalls them', () => {
  const [processes, runs] = isTorture ? [8, 1_000] : [3, 20];
  const usual: readonly Blow[] = ['kill', 'stop', 'server'];
  const blows: readonly Blow[] = isTorture
    ? Array.from({ length: 60 }, (_, i) => (i % 12 === 6 ? 'server' : i % 4 === 1 ? 'stop' : 'kill'))
    : usual;

  test(
    `${runs} runs outlast ${blows.length} kills and stops of their processes and of the server: each ends once, no call with effect once runs twice, and no recorded call is repeated (seed ${seed}) (engine 20, 36)`,
    limit,
    async () => {
      // With sixty blows in half a minute some run meets four of them before anything is recorded: at 3 it would be parked.
      const job = { steps: 5, modelMs: 15, leaseMs: LEASE_MS, maxAttempts: 20 };
      await using fleet = new PostgresFleet(server, job);
      const random = randomFrom(seed);
      const workers = Array.from({ length: processes }, () => fleet.begin());
      await fleet.until('all processes begin', () => fleet.lines('began').length === processes);
      await fleet.admitAll(runs);
      const continued: Promise<void>[] = [];
      const frozen = new Set<string>();
      /** A process within a call with effect once, if there is one soon. */
      const oneThatPays = async () => {
        for (let tries = 0; tries < 100; tries++, await sleep(5)) {
          const paying = fleet.paying();
          const found = workers.find(({ pid }) => paying.has(pid ?? 0));
          if (found) return found;
        }
        return undefined;
      };
      const deal = async (blow: Blow, isPaid: boolean) => {
        if (blow === 'server') {
          await server.kill(random() < 0.5 ? 'SIGKILL' : 'SIGQUIT');
          await sleep(random() * 1_000);
          return server.start();
        }
        const worker = (isPaid && (await oneThatPays())) || workers[Math.floor(random() * workers.length)];
        workers.splice(workers.indexOf(worker as ChildProcess), 1);
        worker?.kill(blow === 'kill' ? 'SIGKILL' : 'SIGSTOP');
        if (blow === 'kill') return void workers.push(fleet.begin());
        frozen.add(String(worker?.pid));
        const rested = sleep(LEASE_MS * 1.2 + random() * 1_000);
        continued.push(
          rested.then(() => {
            worker?.kill('SIGCONT');
            if (worker) workers.push(worker);
          }),
        );
      };
      for (const [n, blow] of blows.entries()) {
        const at = (runs * (n + random())) / (blows.length + 1);
        await fleet.until(`${at} runs end`, () => fleet.ended() >= at && workers.length > 0);
        await deal(blow, n % 2 === 0);
      }
      await Promise.all(continued);
      await fleet.until('all runs end', () => fleet.ended() === runs);
      await fleet.until('no record is left', async () => (await fleet.store.listInterrupted()).length === 0);

      const ends = [...Map.groupBy(fleet.lines('ended'), ([runId]) => runId).values()];
      expect(ends.filter((lines) => new Set(lines.map(([, outcomeId]) => outcomeId)).size > 1)).toEqual([]);
      expect(ends.filter((lines) => lines.some(([, , status]) => status !== 'ok'))).toEqual([]);
      const repeats = repeatsIn(fleet.ledger());
      // A process whose lease ran out, in a freeze or on a busy machine, finds out at its next write or call with effects (faults 9).
      // Until then it may ask a model; and a call with effects may be on its way when the process is frozen.
      const mayRepeat = ({ call, pid }: Repeat) =>
        call.includes(' model-') || (call.includes(' look-') && frozen.has(pid));
      const late = repeats.filter((repeat) => repeat.isLate && mayRepeat(repeat));
      const wrong = repeats.filter((repeat) => !late.includes(repeat));
      const about = fleet.linesOf(wrong.map(({ call }) => call.split(' ')[0] ?? ''));
      expect(wrong, `PAWL_SEED=${seed}, frozen: ${[...frozen]}\n${about}`).toEqual([]);
      expect(late.length).toBeLessThanOrEqual(4 * blows.length);
      const taken = Map.groupBy(fleet.lines('taken'), ([runId]) => runId);
      const moved = [...taken.values()].filter((lines) => lines.length > 1);
      expect(moved.length, 'runs that were taken again').toBeGreaterThan(0);
    },
  );
});
