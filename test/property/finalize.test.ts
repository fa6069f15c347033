import fc from 'fast-check';
import { classifyCheckpointOutcome } from 'pawl';
import { arbitraries } from 'pawl/testing';
import { expect, test } from 'vitest';
import { bounded, failures, otherCauses, shutdowns, successes, type Verdict } from '../fixtures/finalize-table.ts';

/** A cause, and whether a shutdown is in it: that is known from how it was built, not from looking at it. */
interface Cause {
  readonly value: unknown;
  readonly isShutdown: boolean;
}

const { shutdownCause, otherCause, runError } = arbitraries(fc);

/** Of the table: cycles, getters that throw, revoked proxies, which fast-check could not hold by themselves. */
const leaf = (makes: readonly { make: () => unknown }[], isShutdown: boolean) =>
  fc.constantFrom(...makes).map(({ make }): Cause => ({ value: make(), isShutdown }));

const causes = fc.letrec<{ cause: Cause }>((tie) => ({
  cause: fc.oneof(
    { maxDepth: 6 },
    fc.constant({ value: undefined, isShutdown: false }),
    shutdownCause.map((value): Cause => ({ value, isShutdown: true })),
    otherCause.map((value): Cause => ({ value, isShutdown: false })),
    leaf(shutdowns, true),
    leaf(otherCauses, false),
    tie('cause').map(({ value, isShutdown }): Cause => ({ value: new Error('outer', { cause: value }), isShutdown })),
    tie('cause').map(({ value, isShutdown }): Cause => ({ value: { name: 'E', code: 'X', cause: value }, isShutdown })),
    fc.array(tie('cause'), { maxLength: 5 }).map(
      (all): Cause => ({
        value: new AggregateError(all.map(({ value }) => value)),
        isShutdown: all.some(({ isShutdown }) => isShutdown),
      }),
    ),
  ),
})).cause;

/** When a run's end and the causes of its stop come together, the first cause stands; here is what stands at the end. */
const moments = fc.record({
  error: fc.option(
    fc.oneof(
      runError.map((error) => ({ make: () => error })),
      fc.constantFrom(...failures),
    ),
    {
      nil: undefined,
    },
  ),
  success: fc.constantFrom(...successes),
  /** Causes in the order in which they came. */
  causes: fc.array(causes, { maxLength: 3 }),
  /** Causes that come at one moment reach the run as one. */
  isOneMoment: fc.boolean(),
});

function standing(all: readonly Cause[], isOneMoment: boolean): Cause {
  if (!isOneMoment || all.length < 2) return all[0] ?? { value: undefined, isShutdown: false };
  return {
    value: new AggregateError(all.map(({ value }) => value)),
    isShutdown: all.some(({ isShutdown }) => isShutdown),
  };
}

const CASES = 100_000;

test(`classifyCheckpointOutcome decides ${CASES} random ends as the matrix does (finalize 2)`, () => {
  const seen: Record<Verdict, number> = { complete: 0, fail: 0, 'leave-running': 0 };
  const property = fc.property(moments, ({ error, success, causes: all, isOneMoment }) => {
    const { value, isShutdown } = standing(all, isOneMoment);
    const expected: Verdict = error === undefined ? 'complete' : isShutdown ? 'leave-running' : 'fail';
    seen[expected] += 1;
    if (classifyCheckpointOutcome((error ?? success).make(), value) !== expected) throw new Error(`not ${expected}`);
  });
  bounded(() => fc.assert(property, { numRuns: CASES }), 170_000);
  expect(seen.complete + seen.fail + seen['leave-running']).toBeGreaterThanOrEqual(CASES);
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(CASES / 20);
}, 180_000);
