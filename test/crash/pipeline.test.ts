import { beforeAll, describe, expect, test } from 'vitest';
import type { FailpointName } from './failpoints.ts';
import { phaseCount } from './pipeline-agent.ts';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { calibrated, inTurn, killsFrom, runTrial, type Stop, type Trial, type Undisturbed } from './trial.ts';

const KILLS = 8 * torture;
const job = { runId: 'run-1', agent: 'pipeline' } as const;

/**
 * At the boundaries of phases, which are saved whole, and around what a phase that begins anew may not do twice. The last
 * boundary goes with the outcome: what is newer takes its place while the step before is being written.
 */
const places: readonly (readonly [name: FailpointName, nth: number])[] = [
  ...Array.from({ length: phaseCount - 1 }, (_, i) => ['after saving the phase', i + 1] as const),
  ['before saving the phase', 3],
  ['before saving the phase', 5],
  ['within a call with effect read', 8],
  ['before a call with effect once', 4],
  ['within a call with effect once', 4],
  ['after a call with effect once', 4],
];

describe(`a pipeline, killed with SIGKILL (seed ${seed}; pipeline 7, 8, recovery.md 5)`, () => {
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

  test('has all its phases when nobody kills it, the optional one by its fallback', () => {
    expect(undisturbed.result.phases.map(({ name }) => name)).toEqual([
      'survey',
      'doubt',
      'dig',
      'sum',
      'act',
      'survey',
    ]);
    expect(undisturbed.result.phases[1]?.output).toBe('no doubts {{.survey}}');
  });

  test('at random moments: it goes on each time and ends as if nothing had happened', () => {
    const broken = trials.map((trial) => brokenPromises(trial, undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('was really killed, in most of its phases (recovery.md 9)', () => {
    const midRun = deaths().filter((death) => death.isMidRun);
    const phases = new Set(midRun.map(({ record }) => record?.completedPhases.length));
    console.log(
      `seed ${seed}: ${trials.length} runs, ${deaths().length} kills, ${midRun.length} mid-run, ${phases.size} phases`,
    );
    expect(midRun.length).toBeGreaterThan(KILLS / 4);
    expect(phases.size).toBeGreaterThan(2);
  });

  test.concurrent.for(places.map(([name, nth]) => [`${name}, number ${nth}`, { name, nth }] as const))(
    '%s: the next process ends the run',
    { timeout: 60_000 },
    async ([, failpoint]) => {
      const trial = await inTurn(() => runTrial(job, [{ failpoint }]));
      expect(trial.deaths.length, 'the point was reached').toBe(1);
      expect(brokenPromises(trial, undisturbed.result)).toEqual([]);
    },
  );
});
