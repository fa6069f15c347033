import { beforeAll, describe, expect, test } from 'vitest';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { judgeNotes, plantFolder } from './survey-agent.ts';
import { calibrated, inTurn, killsFrom, runTrial, type Stop, type Trial, type Undisturbed } from './trial.ts';

const KILLS = 50 * torture;
const job = { runId: 'run-1', agent: 'survey' } as const;
const around = { prepare: plantFolder, judge: judgeNotes };

describe(`the survey of docs/examples, killed with SIGKILL (seed ${seed})`, () => {
  let undisturbed: Undisturbed;
  const trials: Trial[] = [];
  const deaths = () => trials.flatMap((trial) => trial.deaths);

  beforeAll(async () => {
    undisturbed = await calibrated(job, around);
    const random = randomFrom(seed);
    const plans = Array.from({ length: 3 * KILLS }, () => killsFrom(random, undisturbed.tookMs));
    const one = async (stops: readonly Stop[]) => {
      if (deaths().length < KILLS) trials.push(await runTrial(job, stops, around));
    };
    await Promise.all(plans.map((stops) => inTurn(() => one(stops))));
  }, 180_000 * torture);

  test('at random moments: the report, the notes and the answer are those of an undisturbed survey', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('was really killed, and often enough in the middle of its work (recovery.md 9)', () => {
    const midRun = deaths().filter((death) => death.isMidRun);
    console.log(`seed ${seed}: ${trials.length} surveys, ${deaths().length} kills, ${midRun.length} of them mid-run`);
    expect(deaths().length).toBeGreaterThanOrEqual(KILLS);
    expect(midRun.length).toBeGreaterThan(KILLS / 4);
  });

  test.for(['before', 'within', 'after'] as const)(
    '%s the publishing: it is published at most once, and the answer says what is known',
    { timeout: 30_000 },
    async (side) => {
      const stop: Stop = { failpoint: { name: `${side} a call with effect once`, nth: 1 } };
      const trial = await runTrial(job, [stop], around);
      expect(trial.deaths).toHaveLength(1);
      expect(brokenPromises(trial, undisturbed.result)).toEqual([]);
      expect(trial.result?.output).toContain('Whether the report was published is not known');
    },
  );
});
