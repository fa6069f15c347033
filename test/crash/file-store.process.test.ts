import { describe, expect, test } from 'vitest';
import type { FailpointName } from './failpoints.ts';
import { brokenPromises } from './promises.ts';
import { seed, torture } from './random.ts';
import { RandomKills } from './random-kills.ts';
import { inTurn, runTrial } from './trial.ts';

const job = { runId: 'run-1', agent: 'twelve-tools', store: 'file' } as const;
const limit = { timeout: 180_000 };

describe(`a run of twelve tools on the file store, killed with SIGKILL (seed ${seed})`, () => {
  const trials = RandomKills.of(job, { kills: 6 });

  test('at random moments goes on each time and ends as if nothing had happened (recovery 5)', () => {
    trials.expectUnbroken();
  });

  test('was really killed, and often enough in the middle of its work (recovery 9)', () => {
    trials.expectKilled();
  });

  type Point = readonly [name: FailpointName, nth: number];
  const more: readonly Point[] = [
    ['after claim', 1],
    ['after a call with effect once', 2],
    ['after saving the outcome', 1],
    ['after delete', 1],
  ];
  const points: readonly Point[] = [
    ['after saving the first record', 1],
    ['after saving the intent', 3],
    ['before saving the result', 2],
    ['after keeping the outcome', 1],
    ...(torture > 1 ? more : []),
  ];
  test.concurrent.for(points)(
    '%s, occurrence %i: the next process ends the run (recovery 5)',
    limit,
    async ([name, nth]) => {
      const trial = await inTurn(() => runTrial(job, [{ failpoint: { name, nth } }]));
      expect(trial.deaths, 'the point was reached').toHaveLength(1);
      expect(brokenPromises(trial, trials.undisturbed.result)).toEqual([]);
    },
  );
});
