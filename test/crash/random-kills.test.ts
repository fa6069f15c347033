import { beforeAll, describe, expect, test } from 'vitest';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { calibrated, inTurn, killsFrom, runTrial, type Stop, type Trial, type Undisturbed } from './trial.ts';

const KILLS = 50 * torture;
const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

describe(`a run of twelve tools, killed with SIGKILL at random moments (seed ${seed})`, () => {
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

  test('goes on each time and ends as if nothing had happened (recovery.md 5, executor.md 13)', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('was really killed, and often enough in the middle of its work (recovery.md 9)', () => {
    const midRun = deaths().filter((death) => death.isMidRun);
    console.log(`seed ${seed}: ${trials.length} runs, ${deaths().length} kills, ${midRun.length} of them mid-run`);
    expect(deaths().length).toBeGreaterThanOrEqual(KILLS);
    expect(midRun.length).toBeGreaterThan(KILLS / 4);
  });
});
