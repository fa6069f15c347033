// The processes of test/crash, in other runtimes: each is killed in the middle of a run, and the next one of its kind ends it.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { RunResult } from 'pawl';
import { beforeAll, describe, expect, test } from 'vitest';
import { runPostgresTrial } from '../crash/postgres-trial.ts';
import { brokenPromises } from '../crash/promises.ts';
import { randomFrom, seed } from '../crash/random.ts';
import { type Around, inTurn, killsFrom, runTrial, type Stop, type Trial } from '../crash/trial.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { inRuntime, others, type Runtime, whyNoRuntime } from './runtimes.ts';

const server = postgresServer(['fsync=off']);
/** It takes a minute: `npm test` kills at two places. */
const whyNotNow = process.env.PAWL_TEST_ENGINES ? undefined : 'npm run test:engines runs it';
const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

const stores = [
  ['the SQLite store', undefined, (stops: readonly Stop[], runtime: Runtime) => runTrial({ ...job, runtime }, stops)],
  [
    'the PostgreSQL store',
    whyNoPostgres,
    (stops: readonly Stop[], runtime: Runtime) => runPostgresTrial(server, stops, runtime),
  ],
] as const;

/** One within a call that must not run twice; one, in the process after it, where a step is recorded. */
const kills: readonly Stop[] = [
  { failpoint: { name: 'within a call with effect once', nth: 2 } },
  { failpoint: { name: 'after saving the step', nth: 2 } },
];

describe.skipIf(others.every((runtime) => whyNoRuntime(runtime)))('a run whose processes are killed', () => {
  let undisturbed: RunResult;
  beforeAll(async () => {
    const { result, complaints } = await runTrial(job, []);
    if (result?.status !== 'ok') throw new Error(`the undisturbed run failed: ${JSON.stringify(result)} ${complaints}`);
    undisturbed = result;
  }, 180_000);

  const pairs = others.flatMap((runtime) => stores.map((store) => [runtime, ...store] as const));
  describe.for(pairs)('in %s', ([runtime, name, whyNot, trialOf]) => {
    test.skipIf(whyNoRuntime(runtime) ?? whyNot)(
      inRuntime(
        runtime,
        `killed twice on ${name}, it ends as in Node, and repeats nothing that was recorded (engine 35, 46)`,
      ),
      { timeout: 180_000 },
      async () => {
        const trial = await inTurn(() => trialOf(kills, runtime));
        expect(trial.deaths.map(({ isMidRun }) => isMidRun)).toEqual([true, true]);
        expect(brokenPromises(trial, undisturbed)).toEqual([]);
      },
    );
  });

  test.skipIf(others.some((runtime) => whyNoRuntime(runtime)))(
    inRuntime('Bun', inRuntime('Deno', 'a run that began in Node and continued in Bun ends in Deno (engine 35)')),
    { timeout: 180_000 },
    async () => {
      const runtimes = ['Node', 'Bun'] as const;
      const stops = kills.map((kill, i) => ({ ...kill, runtime: runtimes[i] }) as Stop);
      const trial = await runTrial({ ...job, runtime: 'Deno' }, stops);
      expect(trial.deaths.map(({ isMidRun }) => isMidRun)).toEqual([true, true]);
      expect(brokenPromises(trial, undisturbed)).toEqual([]);
    },
  );

  describe.for(others)('in %s', (runtime) => {
    test.skipIf(whyNoRuntime(runtime) ?? whyNotNow)(
      `${inRuntime(runtime, `killed by SIGKILL at random moments, it ends as in Node (seed ${seed}) (engine 46)`)}${whyNotNow ? ` (SKIPPED: ${whyNotNow})` : ''}`,
      { timeout: 300_000 },
      async () => {
        const { tookMs } = await runTrial({ ...job, runtime }, []);
        const random = randomFrom(seed);
        const trials: Trial[] = [];
        const midRun = () => trials.flatMap(({ deaths }) => deaths).filter(({ isMidRun }) => isMidRun);
        while (midRun().length < 4 && trials.length < 20) {
          trials.push(await runTrial({ ...job, runtime }, killsFrom(random, tookMs)));
        }
        expect(trials.flatMap((trial) => brokenPromises(trial, undisturbed))).toEqual([]);
        expect(midRun().length).toBeGreaterThan(3);
      },
    );

    test.skipIf(whyNoRuntime(runtime))(
      inRuntime(runtime, 'a new SQLite file that another process has locked is waited for (engine 35)'),
      async () => {
        const trial = await runTrial({ ...job, runtime }, [], lockedFor(500));
        expect(brokenPromises(trial, undisturbed)).toEqual([]);
      },
    );
  });
});

/** Another process holds the lock of the new SQLite file for so long, ms. */
function lockedFor(ms: number): Around {
  const prepare = (folder: string) => {
    const db = new DatabaseSync(join(folder, 'runs.db'));
    db.exec('BEGIN IMMEDIATE');
    setTimeout(() => db.close(), ms);
  };
  return { prepare, judge: () => [] };
}
