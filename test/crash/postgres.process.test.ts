import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, type RunResult } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { postgresServer, whyNoOwnPostgres, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { isStopped } from './child-end.ts';
import { type FailpointName, Failpoints } from './failpoints.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { ended, newPlace, runPostgresTrial, startWorker } from './postgres-trial.ts';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { inTurn, type Stop } from './trial.ts';
import { twelveTools } from './twelve-tools.ts';

const server = postgresServer(['fsync=off', 'max_connections=200']);
const more = [
  ['after claim'],
  ['after saving the first record'],
  ['after saving the result', 2],
  ['before delete'],
] as const;
const limit = { timeout: 180_000 * torture };

describe.skipIf(whyNoPostgres)('a process on PostgreSQL that is killed in the middle of a run', () => {
  let undisturbed: RunResult;
  beforeAll(async () => {
    const { result, complaints } = await runPostgresTrial(server, []);
    if (result?.status !== 'ok') throw new Error(`the undisturbed run failed: ${JSON.stringify(result)} ${complaints}`);
    undisturbed = result;
  }, 180_000);

  const places: readonly (readonly [name: FailpointName, nth?: number])[] = [
    ['within a call with effect once'],
    ['before saving the intent', 3],
    ['after keeping the outcome'],
    ...(torture > 1 ? more : []),
  ];

  test.concurrent.for(places)('%s: the next process ends the run (recovery 5)', limit, async ([name, nth = 1]) => {
    const stop: Stop = { failpoint: { name, nth } };
    const trial = await inTurn(() => runPostgresTrial(server, [stop]));
    expect(trial.deaths).toHaveLength(1);
    expect(brokenPromises(trial, undisturbed)).toEqual([]);
  });

  test(
    `by SIGKILL at random moments: it continues as if nothing had happened (seed ${seed}) (recovery 5)`,
    limit,
    async () => {
      const random = randomFrom(seed);
      const kill = (): Stop => ({ signal: 'SIGKILL', afterMs: random() * 80, from: 'working' });
      const one = () => inTurn(() => runPostgresTrial(server, [kill()]));
      const trials = await Promise.all(Array.from({ length: torture > 1 ? 20 : 1 }, one));
      const inTheMiddle = () => trials.filter(({ deaths }) => deaths[0]?.isMidRun).length;
      // A kill may come too late where the machine was busy just then.
      for (let more = 0; more < 10 && inTheMiddle() === 0; more++) trials.push(await one());
      expect(
        trials.flatMap((trial) => brokenPromises(trial, undisturbed)),
        `PAWL_SEED=${seed}`,
      ).toEqual([]);
      expect(inTheMiddle(), 'kills in the middle').toBeGreaterThan(0);
    },
  );
});

describe.skipIf(whyNoPostgres)('several hosts on one PostgreSQL', () => {
  test(
    'an owner that slept through its lease has lost the run: what it does next is refused (recovery 3)',
    limit,
    async () => {
      const { job, folder, close } = newPlace(server);
      const failpoint = { name: 'within a call with effect idempotent', nth: 2, signal: 'SIGSTOP' } as const;
      const owner = startWorker({ ...job, failpoint, leaseMs: 1_500 });
      // Not by a hook taken from the import: beside concurrent tests one was seen to run before the end of its test.
      try {
        const said = ended(owner);
        while (!isStopped(owner)) await sleep(5);

        const { agent, model } = twelveTools(folder, new Failpoints(undefined));
        const store = postgresStore({ pool: server.pool(), schema: job.schema });
        const executor = createExecutor({ models: { fast: model }, agents: [agent], store });
        const begin = () => executor.run(agent, { runId: job.runId, prompt: 'Begin.' });
        let result = await begin();
        for (; result.error?.code === 'RUN_OWNED_ELSEWHERE'; result = await begin()) await sleep(50);
        expect({ status: result.status, error: result.error }).toEqual({ status: 'ok', error: undefined });
        const { length } = readLedger(folder);

        owner.kill('SIGCONT');
        expect(await said).toContain('ended LEASE_LOST');
        const later = readLedger(folder).slice(length);
        expect(later.filter(({ phase }) => phase === 'saved')).toEqual([]);
        expect(beginsIn(later)).toEqual([]);
      } finally {
        owner.kill('SIGKILL');
        await close();
      }
    },
  );

  const [processes, runs] = torture > 1 ? [8, 200] : [3, 9];
  test(
    `${processes} processes that recover ${runs} runs at once share them: no call runs twice (recovery 3, faults 8)`,
    limit,
    async ({ onTestFinished }) => {
      const { job, folder, store, close } = newPlace(server);
      onTestFinished(close);
      const first = startWorker({ ...job, runs, isFirstBoot: true });
      onTestFinished(() => void first.kill('SIGKILL'));
      await ended(first, (text) => text.includes('all begun') && first.kill('SIGKILL'));
      const { length } = readLedger(folder);
      expect(await store.listInterrupted()).toHaveLength(runs);

      const others = Array.from({ length: processes }, () => startWorker({ ...job, runs }));
      const said = await Promise.all(others.map((child) => ended(child)));
      for (const text of said) expect(text).toContain('ended ok');
      const later = beginsIn(readLedger(folder).slice(length));
      const calls = later.map((line) => `${line.runId} ${line.callId}`);
      expect(new Set(calls).size).toBe(calls.length);
      expect(new Set(later.map((line) => line.runId)).size).toBe(runs);
      expect(await store.listInterrupted()).toEqual([]);
      for (const [, lines] of Map.groupBy(later, (line) => line.runId)) {
        expect(new Set(lines.map((line) => line.pid)).size, 'one owner for each run').toBe(1);
      }
    },
  );
});

describe.skipIf(whyNoOwnPostgres)('a server that is killed and started again in the middle of runs', () => {
  test(
    'all of them end as if nothing had happened: nothing is lost, no call runs twice (recovery 4, 7)',
    limit,
    async ({ onTestFinished }) => {
      const folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
      const { agent, model } = twelveTools(folder, new Failpoints(undefined));
      const executor = createExecutor({ models: { fast: model }, agents: [agent], store });
      await store.load('run');
      const ids = Array.from({ length: torture > 1 ? 20 : 8 }, (_, i) => `run-${i}`);
      let deaths = 0;
      let isOver = false;
      const running = Promise.all(ids.map((runId) => executor.run(agent, { runId, prompt: 'Begin.' }))).finally(() => {
        isOver = true;
      });
      while (!isOver && deaths < 3) {
        await sleep(15);
        await server.kill(deaths % 2 ? 'SIGQUIT' : 'SIGKILL');
        if (!isOver) deaths += 1;
        await server.start();
      }
      const results = await running;
      expect(deaths).toBeGreaterThan(1);
      const [first] = results;
      for (const { status, output, messages } of results) {
        expect({ status, output, messages }).toEqual({
          status: 'ok',
          output: first?.output,
          messages: first?.messages,
        });
      }
      const begun = beginsIn(readLedger(folder)).map((line) => `${line.runId} ${line.callId}`);
      expect(new Set(begun).size).toBe(begun.length);
      expect(await store.listInterrupted()).toEqual([]);
      await executor.shutdown();
    },
  );
});
