import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { type PlannedSlice, type PlannedStep, slicedRun } from '../fixtures/sliced-run.ts';

const RUNS = torture > 1 ? 250 : 8;
const MOST_SLICES = 60;

const ms = fc.integer({ min: 10, max: 900 });
const call = fc.record({ effect: fc.constantFrom('read' as const, 'idempotent' as const, 'once' as const), ms });
const steps: fc.Arbitrary<PlannedStep[]> = fc.array(
  fc.record({ ms, calls: fc.array(call, { minLength: 1, maxLength: 4 }) }),
  {
    maxLength: 5,
  },
);
const slicesWith = (graceMs: fc.Arbitrary<number>): fc.Arbitrary<PlannedSlice[]> =>
  fc.array(fc.record({ budgetMs: fc.integer({ min: 0, max: 1_500 }), graceMs, isElsewhere: fc.boolean() }), {
    minLength: 1,
    maxLength: 6,
  });

/** Longer than each call, also with the share of it that `read` calls get. */
const ample = fc.constant(2_000);

const settings = { seed, numRuns: RUNS, endOnFailure: torture === 1 };

test('any slicing with time for its calls gives the conversation of one run: no call is asked, or run, again (engine 1, 2, 3)', async () => {
  await fc.assert(
    fc.asyncProperty(steps, slicesWith(ample), async (plan, slices) => {
      const whole = slicedRun(plan);
      await whole.whole();
      const sliced = slicedRun(plan);
      await sliced.begin();
      let driven = await sliced.drive(slices[0] as PlannedSlice);
      for (let i = 1; driven.state === 'more' && i < MOST_SLICES; i++) {
        expect((await sliced.store.load('r'))?.attempts).toBe(0);
        driven = await sliced.drive(slices[i % slices.length] as PlannedSlice);
      }
      expect(driven).toMatchObject({ runId: 'r', state: 'ended' });
      expect(await sliced.conversation()).toEqual(await whole.conversation());
      expect(sliced.asked).toEqual(whole.asked);
      expect(sliced.ran.toSorted()).toEqual(whole.ran.toSorted());
    }),
    settings,
  );
});

test('slices that cut calls end the run, or park it as too short; no once call runs twice, and no recorded turn is asked again (engine 3, 5)', async () => {
  await fc.assert(
    fc.asyncProperty(steps, slicesWith(fc.integer({ min: 0, max: 600 })), async (plan, slices) => {
      const sliced = slicedRun(plan);
      await sliced.begin();
      let driven = await sliced.drive(slices[0] as PlannedSlice);
      for (let i = 1; driven.state === 'more' && i < MOST_SLICES; i++) {
        const before = (await sliced.store.load('r'))?.messages.filter(({ role }) => role === 'assistant').length ?? 0;
        const asked = sliced.asked.length;
        driven = await sliced.drive(slices[i % slices.length] as PlannedSlice);
        expect(Math.min(...sliced.asked.slice(asked), Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(before);
      }
      const isParked = driven.state === 'waiting' && driven.code === 'SLICE_TOO_SHORT';
      expect(isParked || driven.state === 'ended', JSON.stringify(driven)).toBe(true);
      const once = sliced.ran.filter((callId) => effectOf(plan, callId) === 'once');
      expect(new Set(once).size).toBe(once.length);
    }),
    settings,
  );
});

function effectOf(plan: readonly PlannedStep[], callId: string): string | undefined {
  const [turn, place] = callId.split('-').map(Number);
  return plan[turn ?? 0]?.calls[place ?? 0]?.effect;
}
