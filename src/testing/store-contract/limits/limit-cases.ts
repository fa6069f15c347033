import assert from 'node:assert/strict';
import type { BucketCost, BucketMove, CallCosts, LimitStore } from '../../../store/limits/port.ts';
import { type Draft, limitStore } from '../case.ts';

/** Longer than any case takes: no turn of it comes. */
const LONG = 600_000;

const cost = (bucket: string, costMs: number, lagMs = 0): BucketCost => ({ bucket, costMs, lagMs });

/** A call with one group of buckets. */
const call = (...group: readonly BucketCost[]): CallCosts => [group];

/** The turns of some calls, as waits from now, ms. */
async function waits(
  limits: LimitStore,
  calls: readonly CallCosts[],
  moves?: readonly BucketMove[],
): Promise<readonly number[]> {
  const { now, turns } = await limits.takeTurns(calls, moves);
  return turns.map(({ at }) => at - now);
}

/** A server may round a time, and time passes between two takes: at most that of a case. */
function near(wait: number | undefined, expected: number): void {
  assert(wait !== undefined && wait <= expected + 1 && wait > expected - LONG / 2, `${wait} is not about ${expected}`);
}

/** Cases of a store that gives turns to limited calls. */
export const limitCases: readonly Draft[] = [
  limitStore(
    'calls of one bucket have their turns one after the other, also in other processes (failover 17)',
    async (bench) => {
      const { store } = bench;
      const [first, second, third] = await waits(store.limits, [
        call(cost('a', LONG)),
        call(cost('a', LONG)),
        call(cost('b', LONG)),
      ]);
      assert.deepEqual([first, third], [0, 0]);
      near(second, LONG);
      near((await waits(store.limits, [call(cost('a', LONG))]))[0], 2 * LONG);
      near((await waits(store.limits, [call(cost('b', 1))]))[0], LONG);
    },
  ),

  limitStore(
    'processes that take turns at once get each turn once (failover 17)',
    async ({ store, reopen }) => {
      const other = await reopen();
      const stores = [store, other, store, other, store, other];
      const taken = await Promise.all(
        stores.map((each) => each.limits.takeTurns([call(cost('a', LONG)), call(cost('a', LONG))])),
      );
      const turns = taken.flatMap((each) => each.turns.map(({ at }) => at)).sort((a, b) => a - b);
      const apart = turns.slice(1).map((turn, i) => turn - (turns[i] ?? 0));
      assert.equal(turns.length, 12);
      for (const gap of apart) assert(gap >= LONG - 1, `two turns are ${gap} ms apart`);
    },
    'reopen',
  ),

  limitStore(
    'of several buckets the latest turn counts, and each of them is charged (failover 17)',
    async ({ store }) => {
      await store.limits.takeTurns([call(cost('a', LONG))]);
      near((await waits(store.limits, [call(cost('a', LONG), cost('b', LONG))]))[0], LONG);
      near((await waits(store.limits, [call(cost('b', LONG), cost('a', LONG))]))[0], 2 * LONG);
      assert.deepEqual(await waits(store.limits, [[]]), [0]);
      assert.deepEqual(await waits(store.limits, []), []);
    },
  ),

  limitStore(
    'a call that one group holds back for more than a second is charged in no group after it (failover 17)',
    async ({ store }) => {
      const taken = await store.limits.takeTurns([
        [[cost('a', LONG)], [cost('b', LONG)], [cost('c', LONG)]],
        [[cost('c', LONG)], [cost('b', LONG)], [cost('a', LONG)]],
      ]);
      assert.deepEqual(
        taken.turns.map(({ groups }) => groups),
        [3, 1],
      );
      near((await waits(store.limits, [call(cost('a', 0))]))[0], LONG);
      near((await waits(store.limits, [call(cost('b', 0))]))[0], LONG);
      near((await waits(store.limits, [call(cost('c', 0))]))[0], 2 * LONG);
    },
  ),

  limitStore(
    'a bucket lags no further behind the turn of its call than its lag: the buckets of a group are equally late (failover 17, 19)',
    async ({ store }) => {
      await waits(store.limits, [call(cost('a', LONG))]);
      near((await waits(store.limits, [call(cost('a', 1), cost('b', LONG, LONG / 4))]))[0], LONG);
      near((await waits(store.limits, [call(cost('b', 0, LONG / 4))]))[0], 1.75 * LONG);
    },
  ),

  limitStore('an idle bucket lags behind now: so much may begin at once (failover 17)', async ({ store }) => {
    const lagging = cost('a', LONG, 3 * LONG);
    const taken = await waits(
      store.limits,
      Array.from({ length: 6 }, () => call(lagging)),
    );
    assert.deepEqual(
      taken.slice(0, 4).map((wait) => wait > 0.5),
      [false, false, false, false],
    );
    near(taken[4], LONG);
    near(taken[5], 2 * LONG);
  }),

  limitStore(
    'moves of earlier calls come before the calls of a take, and never beyond idle (failover 16)',
    async ({ store }) => {
      await store.limits.takeTurns([call(cost('a', 4 * LONG))]);
      near((await waits(store.limits, [call(cost('a', 0))], [{ bucket: 'a', byMs: -3 * LONG, lagMs: 0 }]))[0], LONG);
      near((await waits(store.limits, [call(cost('a', 0))], [{ bucket: 'a', byMs: LONG, lagMs: 0 }]))[0], 2 * LONG);
      assert.deepEqual(
        await waits(store.limits, [call(cost('a', LONG))], [{ bucket: 'a', byMs: -9 * LONG, lagMs: 0 }]),
        [0],
      );
      near((await waits(store.limits, [call(cost('a', 0))]))[0], LONG);
      await store.limits.takeTurns([], [{ bucket: 'new', byMs: LONG, lagMs: 0 }]);
      near((await waits(store.limits, [call(cost('new', 0))]))[0], LONG);
    },
  ),

  limitStore('times that cannot be are refused, and change nothing (failover 17)', async ({ store }) => {
    for (const bad of [cost('a', -1), cost('a', Number.NaN), cost('a', 1, Number.POSITIVE_INFINITY)])
      await assert.rejects(store.limits.takeTurns([call(cost('a', LONG), bad)]), TypeError);
    await assert.rejects(store.limits.takeTurns([], [{ bucket: 'a', byMs: Number.NaN, lagMs: 0 }]), TypeError);
    assert.deepEqual(await waits(store.limits, [call(cost('a', LONG))]), [0]);
  }),
];
