import { beforeAll, describe, expect, test } from 'vitest';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { calibrated, inTurn, runTrial, type Stop, type Trial, type Undisturbed } from './trial.ts';

const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

describe(`a host that shuts its executor down at random moments (seed ${seed})`, () => {
  let undisturbed: Undisturbed;
  const trials: Trial[] = [];
  const left = () => trials.flatMap((trial) => trial.deaths).filter((death) => death.record !== null);
  const wasLeftOften = () => trials.some((trial) => trial.deaths.length > 3);

  beforeAll(async () => {
    undisturbed = await calibrated(job);
    const random = randomFrom(seed);
    const leave = (): Stop => ({ signal: 'SIGTERM', afterMs: random() * 0.5 * undisturbed.tookMs });
    // More deploys than a run has attempts: none of them counts.
    const planOf = (_: unknown, i: number) => Array.from({ length: i % 2 === 0 ? 1 : 5 }, leave);
    const one = async (stops: readonly Stop[]) => void trials.push(await runTrial(job, stops));
    await Promise.all(Array.from({ length: 6 * torture }, planOf).map((stops) => inTurn(() => one(stops))));
    // Moments that were drawn too late leave a run too seldom: others are drawn.
    for (let more = 0; more < 20 && !(wasLeftOften() && left().some((death) => death.isMidRun)); more++) {
      await one(planOf(undefined, 1));
    }
  }, 240_000 * torture);

  test('loses no more than a SIGKILL would: the run ends as if nothing had happened', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('leaves a run without a failed start to its name, so that any number of deploys parks none (recovery.md 2)', () => {
    expect(left().map((death) => death.record?.attempts)).toEqual(left().map(() => 0));
    expect(left().some((death) => death.isMidRun)).toBe(true);
    expect(wasLeftOften()).toBe(true);
  });
});
