import { beforeAll, describe, expect, test } from 'vitest';
import type { FailpointName } from './failpoints.ts';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { calibrated, inTurn, killsFrom, runTrial, type Stop, type Trial, type Undisturbed } from './trial.ts';

const KILLS = 10 * torture;
const job = { runId: 'run-1', agent: 'twelve-tools', store: 'file' } as const;
const limit = { timeout: 60_000 };

describe(`a run of twelve tools on the file store, killed with SIGKILL (seed ${seed})`, () => {
  let undisturbed: Undisturbed;
  const trials: Trial[] = [];
  const deaths = () => trials.flatMap((trial) => trial.deaths);

  beforeAll(async () => {
    undisturbed = await calibrated(job);
    const random = randomFrom(seed);
    const plans = Array.from({ length: 3 * KILLS }, () => killsFrom(random, undisturbed.tookMs));
    const one = async (stops: readonly Stop[]) => {
      if (deaths().length < KILLS) trials.push(await runTrial(job, stops));
    };
    await Promise.all(plans.map((stops) => inTurn(() => one(stops))));
  }, 180_000 * torture);

  test('at random moments goes on each time and ends as if nothing had happened (recovery 5)', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('was really killed, and often enough in the middle of its work (recovery 9)', () => {
    expect(deaths().length).toBeGreaterThanOrEqual(KILLS);
    expect(deaths().filter((death) => death.isMidRun).length).toBeGreaterThan(KILLS / 4);
  });

  const points: readonly (readonly [name: FailpointName, nth: number])[] = [
    ['after claim', 1],
    ['after saving the first record', 1],
    ['after saving the intent', 3],
    ['after a call with effect once', 2],
    ['before saving the result', 2],
    ['after saving the outcome', 1],
    ['after keeping the outcome', 1],
    ['after delete', 1],
  ];
  test.concurrent.for(points)(
    '%s, occurrence %i: the next process ends the run (recovery 5)',
    limit,
    async ([name, nth]) => {
      const trial = await inTurn(() => runTrial(job, [{ failpoint: { name, nth } }]));
      expect(trial.deaths, 'the point was reached').toHaveLength(1);
      expect(brokenPromises(trial, undisturbed.result)).toEqual([]);
    },
  );
});
