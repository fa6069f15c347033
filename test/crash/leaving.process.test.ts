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
    let { tookMs } = undisturbed;
    /** Five moments of which each took half of the run at most would often be more than the run. */
    const leave = (part: number): Stop => ({ signal: 'SIGTERM', afterMs: random() * part * tookMs });
    const one = async (times: number) => {
      const trial = await runTrial(
        job,
        Array.from({ length: times }, () => leave(times === 1 ? 0.5 : 0.25)),
      );
      trials.push(trial);
      // It was over before it was left: the machine has become faster.
      if (trial.deaths.length === 0) tookMs = Math.min(tookMs, trial.tookMs);
    };
    // More deploys than a run has attempts: none of them counts.
    const times = Array.from({ length: torture > 1 ? 60 : 4 }, (_, i) => (i % 2 === 0 ? 1 : 5));
    await Promise.all(times.map((each) => inTurn(() => one(each))));
    // Moments that were drawn too late leave a run too seldom: others are drawn.
    for (let more = 0; more < 20 && !(wasLeftOften() && left().some((death) => death.isMidRun)); more++) await one(5);
  }, 240_000 * torture);

  test('loses no more than a SIGKILL would: the run ends as if nothing had happened', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('leaves a run without a failed start to its name, so that any number of deploys parks none (recovery 2)', () => {
    expect(left().map((death) => death.record?.attempts)).toEqual(left().map(() => 0));
    expect(left().some((death) => death.isMidRun)).toBe(true);
    expect(wasLeftOften()).toBe(true);
  });
});
