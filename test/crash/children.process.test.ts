import type { RunResult } from 'pawl';
import { beforeAll, describe, expect, test } from 'vitest';
import { type ChildrenTrial, runTree } from './children-trial.ts';
import type { FailpointName } from './failpoints.ts';
import { randomFrom, seed, torture } from './random.ts';
import { inTurn, killsFrom } from './trial.ts';

const KILLS = torture === 1 ? 3 : 50;

/** Where the first process dies. The numbers count over all runs of the tree. */
const places: readonly (readonly [name: FailpointName, nth: number])[] = [
  ['after claim', 2],
  ['after saving the first record', 2],
  ['after saving the first record', 4],
  ['before saving the intent', 1],
  ['within a call with effect once', 1],
  ['after saving the step', 2],
  ['before saving the outcome', 1],
  ['after saving the outcome', 1],
  ['after keeping the outcome', 1],
  ['after delete', 1],
  ['after delete', 2],
  ['before saving the result', 4],
  ['after keeping the outcome', 5],
];

describe(`a tree of runs whose process is killed with SIGKILL (seed ${seed})`, () => {
  let undisturbed: RunResult;
  let tookMs = 0;
  beforeAll(async () => {
    const trials: ChildrenTrial[] = [];
    for (let i = 0; i < 2; i++) trials.push(await runTree([]));
    const [, { result, tookMs: ms }] = trials as [ChildrenTrial, ChildrenTrial];
    expect(result).toMatchObject({ status: 'ok', output: 'all done', iterations: 3 });
    undisturbed = result as RunResult;
    tookMs = ms;
  }, 180_000);

  test.concurrent.for(places.map(([name, nth]) => [`${name}, number ${nth}`, { failpoint: { name, nth } }] as const))(
    '%s: ends as if nothing had happened; no child that ended is run again (supervision 7)',
    { timeout: 180_000 },
    async ([, stop]) => {
      const { broken, deaths } = await inTurn(() => runTree([stop], undisturbed));
      expect(broken).toEqual([]);
      expect(deaths, 'the point was reached').toHaveLength(1);
    },
  );

  test('at random moments, once or twice: the same (supervision 7)', { timeout: 240_000 * torture }, async () => {
    const random = randomFrom(seed);
    const trials: ChildrenTrial[] = [];
    const allDeaths = () => trials.flatMap((trial) => trial.deaths);
    const deathsAmid = () => allDeaths().filter(({ records }) => records.length > 1);
    // Few draws may well be unlucky: more are made until enough have met with what they are for.
    const isEnough = () => allDeaths().length >= KILLS && deathsAmid().length > KILLS / 4;
    const one = async () => {
      if (isEnough()) return;
      const trial = await runTree(killsFrom(random, tookMs), undisturbed);
      trials.push(trial);
      // It was over before it was killed: the machine has become faster.
      if (trial.deaths.length === 0) tookMs = Math.min(tookMs, trial.tookMs);
    };
    await Promise.all(Array.from({ length: Math.max(30, 6 * KILLS) }, () => inTurn(one)));
    const broken = trials.map((trial) => trial.broken).filter(({ length }) => length > 0);
    expect(broken, `PAWL_SEED=${seed}`).toEqual([]);
    const [deaths, amid] = [allDeaths(), deathsAmid()];
    console.log(
      `seed ${seed}: ${trials.length} trees, ${deaths.length} kills, ${amid.length} of them with children under way`,
    );
    expect(deaths.length).toBeGreaterThanOrEqual(KILLS);
    expect(amid.length).toBeGreaterThan(KILLS / 4);
  });
});
