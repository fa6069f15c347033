import fc from 'fast-check';
import type { RunOutput } from 'pawl';
import { classifyCheckpointOutcome, type Progress } from 'pawl/stores/kit';
import { arbitraries, freshProgress, type RunStory, runEvents } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { torture } from '../crash/random.ts';
import { checkEnd, stopKinds } from '../executor/stopped-runs.ts';
import { bounded, failures, otherCauses, shutdowns, successes, type Verdict } from '../fixtures/finalize-table.ts';
import { machines, ways } from '../machines/run-places.ts';

/** A cause, and whether a shutdown is in it: that is known from how it was built, not from looking at it. */
interface Cause {
  readonly value: unknown;
  readonly isShutdown: boolean;
}

const { shutdownCause, otherCause, cancelCause, runError, runStory, progress } = arbitraries(fc);

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
const STORIES = 6_000;
const RUNS = 2_000;

describe.runIf(torture > 1)('the finalize matrix on random runs, beside its enumeration in other files', () => {
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

  test(`the machine leaves by the way that the matrix says, and by no other, in ${STORIES} random stories (finalize 2, 3, 8)`, () => {
    const counts = new Map<string, number>();
    fc.assert(
      fc.property(runStory, ({ events, outcome }) => {
        const { entered, verdicts, status } = play(events);
        expect(entered).toEqual(outcome ? [ways[outcome]] : []);
        expect(verdicts).toEqual(entered);
        expect(status).toBe(outcome ? 'done' : 'active');
        counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1);
      }),
      { numRuns: STORIES },
    );
    for (const end of [...Object.keys(ways), 'undefined'])
      expect(counts.get(end) ?? 0, end).toBeGreaterThan(STORIES / 100);
  }, 180_000);

  test('a run that is refused, or stopped wherever it is, leaves by the way that the original error and cause say', () => {
    fc.assert(
      fc.property(progress, runError, cancelCause, fc.boolean(), (begun, error, cause, isRefused) => {
        const begins = isRefused ? runEvents.refused(error, begun) : runEvents.accepted({ progress: begun });
        const { entered } = play([runEvents.stopped(cause), begins], begun);
        expect(entered).toEqual([ways[classifyCheckpointOutcome(error, cause)]]);
      }),
      { numRuns: 1_000 },
    );
  });

  test('events that come at the wrong time, twice or to a run that is over, give no run a second end', () => {
    fc.assert(
      fc.property(runStory, runStory, fc.integer({ min: 0, max: 12 }), (one, other, at) => {
        const events = [...one.events.slice(0, at), ...other.events, ...one.events];
        const { entered, verdicts, status } = play(events);
        expect(entered.length).toBeLessThan(2);
        expect(entered).toEqual(verdicts);
        expect(status).toBe(entered.length === 1 ? 'done' : 'active');
      }),
      { numRuns: 1_000 },
    );
  });

  test(`${RUNS} real runs end once, as the matrix says, with the record gone or left in the store (finalize 2, 8)`, async () => {
    const counts = new Map<string, number>();
    let resumed = 0;
    await fc.assert(
      fc.asyncProperty(stopStories, async (story) => {
        const { status, isResumed } = await checkEnd(story);
        counts.set(status, (counts.get(status) ?? 0) + 1);
        if (isResumed) resumed += 1;
      }),
      { numRuns: RUNS },
    );
    for (const status of ['ok', 'error', 'cancelled', 'killed', 'timeout', 'interrupted'])
      expect(counts.get(status) ?? 0, status).toBeGreaterThan(RUNS / 200);
    expect(resumed).toBeGreaterThan(RUNS / 20);
  }, 180_000);
});

const stopStories = fc.record({
  steps: fc.integer({ min: 0, max: 3 }),
  isOnce: fc.boolean(),
  isModelDown: fc.boolean(),
  moment: fc.integer({ min: 0, max: 16 }),
  stops: fc.array(fc.constantFrom(...stopKinds), { minLength: 0, maxLength: 2 }),
});

/** The ways out that a run enters on these events, by the chart and by the matrix, and whether it is over after them. */
function play(events: RunStory['events'], begun: Progress = freshProgress()) {
  let [snapshot] = initialTransition(machines.single, { progress: begun });
  const entered: string[] = [];
  const verdicts: string[] = [];
  for (const event of events) {
    [snapshot] = transition(machines.single, snapshot, event);
    const way = Object.values(ways).find((name) => snapshot.value === name);
    if (!way || entered.at(-1) === way) continue;
    entered.push(way);
    verdicts.push(ways[classifyCheckpointOutcome(snapshot.context.error, snapshot.context.cause)]);
  }
  if (entered.length > 0) [snapshot] = transition(machines.single, snapshot, runEvents.settled({} as RunOutput));
  return { entered, verdicts, status: snapshot.status };
}
