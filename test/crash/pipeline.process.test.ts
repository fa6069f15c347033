import { describe, expect, test } from 'vitest';
import type { FailpointName } from './failpoints.ts';
import { phaseCount } from './pipeline-agent.ts';
import { brokenPromises } from './promises.ts';
import { seed, torture } from './random.ts';
import { RandomKills } from './random-kills.ts';
import { type Death, inTurn, runTrial } from './trial.ts';

const job = { runId: 'run-1', agent: 'pipeline' } as const;

/**
 * At the boundaries of phases, which are saved whole, and around what a phase that begins anew may not do twice. The last
 * boundary goes with the outcome: what is newer takes its place while the step before is being written.
 */
const allPlaces: readonly (readonly [name: FailpointName, nth: number])[] = [
  ['before saving the phase', 3],
  ...Array.from({ length: phaseCount - 1 }, (_, i) => ['after saving the phase', i + 1] as const),
  ['within a call with effect read', 8],
  ['before saving the phase', 5],
  ['within a call with effect once', 4],
  ['before a call with effect once', 4],
  ['after a call with effect once', 4],
];
/** A spread of them by default: each kind of moment is there, and phases of each kind. */
const places = allPlaces.filter((_, i) => torture > 1 || i % 2 === 0);

/** In how many of its phases it was killed. */
const phasesIn = (deaths: readonly Death[]) => new Set(deaths.map(({ record }) => record?.completedPhases.length)).size;

describe(`a pipeline, killed with SIGKILL (seed ${seed}) (pipeline 7, 8, recovery 5)`, () => {
  const trials = RandomKills.of(job, { kills: torture > 1 ? 8 : 6, isVaried: (midRun) => phasesIn(midRun) > 2 });

  test('has all its phases without a kill, the optional one by its fallback', () => {
    expect(trials.undisturbed.result.phases.map(({ name }) => name)).toEqual([
      'survey',
      'doubt',
      'dig',
      'sum',
      'act',
      'survey',
    ]);
    expect(trials.undisturbed.result.phases[1]?.output).toBe('no doubts {{.survey}}');
  });

  test('at random moments: it continues each time and ends as if nothing had happened', () => {
    trials.expectUnbroken();
  });

  test('was really killed, in most of its phases (recovery 9)', () => {
    trials.expectKilled();
    expect(phasesIn(trials.midRun)).toBeGreaterThan(2);
  });

  /** Calls while the store is away, from the end of that phase on: of the next phase, or of one after it. */
  const allLate: readonly (readonly [phase: number, writes: number, name: FailpointName, nth: number])[] = [
    // The phases `survey` and `doubt`, which continue at their steps.
    [1, 9, 'after a call with effect read', 4],
    [1, 1, 'within a call with effect once', 3],
    // `dig`, `sum` and `act` begin again, or are one model call.
    [2, 9, 'after a call with effect read', 7],
    [3, 9, 'after a call with effect read', 10],
    [3, 2, 'before a call with effect once', 4],
    [3, 2, 'after a call with effect once', 4],
  ];
  const late = allLate.filter((_, i) => torture > 1 || i % 2 === 0 || i === 1);
  test.concurrent.for(late)(
    'while the end of phase %i is late, after %i refused writes, %s, number %i: the next process ends the run (edges 23)',
    { timeout: 180_000 },
    async ([phase, writes, name, nth]) => {
      const trial = await inTurn(() => runTrial({ ...job, late: { phase, writes } }, [{ failpoint: { name, nth } }]));
      expect(trial.deaths.length, 'the point was reached').toBe(1);
      if (writes === 9) expect(trial.deaths[0]?.record?.completedPhases.length, 'it was late').toBe(phase - 1);
      expect(brokenPromises(trial, trials.undisturbed.result)).toEqual([]);
    },
  );

  test.concurrent.for(places.map(([name, nth]) => [`${name}, number ${nth}`, { name, nth }] as const))(
    '%s: the next process ends the run',
    { timeout: 180_000 },
    async ([, failpoint]) => {
      const trial = await inTurn(() => runTrial(job, [{ failpoint }]));
      expect(trial.deaths.length, 'the point was reached').toBe(1);
      expect(brokenPromises(trial, trials.undisturbed.result)).toEqual([]);
    },
  );
});
