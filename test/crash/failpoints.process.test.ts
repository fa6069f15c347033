import { beforeAll, describe, expect, test } from 'vitest';
import type { FailpointName } from './failpoints.ts';
import { brokenPromises } from './promises.ts';
import { seed, torture } from './random.ts';
import { calibrated, inTurn, runTrial, type Stop, type Undisturbed } from './trial.ts';

type Place = readonly [name: FailpointName, nth?: number];

/** Where the first process dies. */
const firstLife: readonly Place[] = [
  ['before claim'],
  ['after claim'],
  ['before load'],
  ['after load'],
  ['before saving the first record'],
  ['after saving the first record'],
  ['before a model reply'],
  ['after a model reply'],
  ['before a call with effect read'],
  ['within a call with effect read'],
  ['after a call with effect read'],
  ['before saving the step'],
  ['after saving the step'],
  ['after a model reply', 2],
  ['before saving the intent'],
  ['after saving the intent'],
  ['before a call with effect idempotent'],
  ['within a call with effect idempotent'],
  ['after a call with effect idempotent'],
  ['before a call with effect once'],
  ['within a call with effect once'],
  ['after a call with effect once'],
  // From here on in steps of three calls that run side by side.
  ['before saving the intent', 3],
  ['after saving the intent', 3],
  ['before a call with effect read', 2],
  ['within a call with effect idempotent', 2],
  ['after a call with effect once', 2],
  ['before saving the result'],
  ['after saving the result'],
  ['before saving the result', 2],
  ['after saving the result', 2],
  ['within a call with effect once', 3],
  ['before a call with effect once', 4],
  ['after a call with effect once', 5],
  ['after a call with effect idempotent', 3],
  ['before saving the step', 5],
  ['after saving the step', 10],
  ['before a model reply', 11],
  ['after a model reply', 11],
  ['before saving the outcome'],
  ['after saving the outcome'],
  ['before keeping the outcome'],
  ['after keeping the outcome'],
  ['before delete'],
  ['after delete'],
];

/** Of the later occurrences these are tried each time: a step of three calls is what one call is not. */
const sideBySide = [
  'before saving the intent, number 3',
  'within a call with effect idempotent, number 2',
  'after a call with effect once, number 2',
  'after saving the result, number 2',
];

/** Where the second process dies, after the first one was killed within a step of three calls. */
const secondLife: readonly Place[] = [
  ['before claim'],
  ['after claim'],
  ['before load'],
  ['after load'],
  ['before saving the intent'],
  ['after saving the intent'],
  ['within a call with effect idempotent'],
  ['after a call with effect once'],
  ['before saving the step'],
  ['after saving the step'],
  ['before saving the outcome'],
  ['after delete'],
];
const inParallelStep: Stop = { failpoint: { name: 'within a call with effect once', nth: 2 } };

const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

describe('a process that dies at a named point (recovery 5)', () => {
  let undisturbed: Undisturbed;
  beforeAll(async () => {
    undisturbed = await calibrated(job);
  }, 180_000);

  const check = async (stops: readonly Stop[]) => {
    const trial = await inTurn(() => runTrial(job, stops));
    expect(trial.deaths.length, 'each of the points was reached').toBe(stops.length);
    expect(brokenPromises(trial, undisturbed.result)).toEqual([]);
  };

  const limit = { timeout: 180_000 };

  // Each kind of moment by default, and those in steps of three calls; all its occurrences in torture.
  const places = firstLife.filter(([name, nth = 1], i) => {
    const isKnown = firstLife.slice(0, i).some((earlier) => earlier[0] === name);
    return torture > 1 || !isKnown || sideBySide.includes(`${name}, number ${nth}`);
  });
  test.concurrent.for(places.map(titled))('%s: the next process ends the run', limit, ([, stop]) => check([stop]));

  // Every fourth one by default, from a beginning that is drawn anew each time.
  const drawn = secondLife.filter((_, i) => torture > 1 || i % 4 === seed % 4);
  test.concurrent.for(drawn.map(titled))('and the process after it, %s: the third ends the run', limit, ([, stop]) =>
    check([inParallelStep, stop]),
  );
});

function titled([name, nth = 1]: Place): [title: string, stop: Stop] {
  return [nth === 1 ? name : `${name}, number ${nth}`, { failpoint: { name, nth } }];
}
