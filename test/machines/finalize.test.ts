import fc from 'fast-check';
import { type CheckpointOutcome, classifyCheckpointOutcome, type RunOutput } from 'pawl';
import { type RunInput, runMachine } from 'pawl/machines';
import { arbitraries, freshProgress, type RunStory, runEvents } from 'pawl/testing';
import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';

const machine = runMachine({ id: 'worker' });
const wayOf = { complete: 'completing', fail: 'failing', 'leave-running': 'leaving-running' } as const;
const waysOut = Object.values(wayOf);
const { runStory, progress, cancelCause, runError } = arbitraries(fc);

/** The ways out that a run enters on these events, and where it stands after them. */
function play(events: RunStory['events'], input: RunInput = { progress: freshProgress() }) {
  let [snapshot] = initialTransition(machine, input);
  const entered: string[] = [];
  const verdicts: CheckpointOutcome[] = [];
  for (const event of events) {
    [snapshot] = transition(machine, snapshot, event);
    const way = waysOut.find((name) => snapshot.value === name);
    if (!way || entered.at(-1) === way) continue;
    entered.push(way);
    verdicts.push(classifyCheckpointOutcome(snapshot.context.error, snapshot.context.cause));
  }
  if (entered.length > 0) [snapshot] = transition(machine, snapshot, runEvents.settled({} as RunOutput));
  return { entered, verdicts, snapshot };
}

const CASES = 6_000;

test(`the machine leaves by the way that the matrix says, and by no other, in ${CASES} random stories (finalize 2, 3, 8)`, () => {
  const counts = new Map<string, number>();
  fc.assert(
    fc.property(runStory, ({ events, outcome }) => {
      const { entered, verdicts, snapshot } = play(events);
      expect(entered).toEqual(outcome ? [wayOf[outcome]] : []);
      expect(verdicts).toEqual(outcome ? [outcome] : []);
      expect(snapshot.status).toBe(outcome ? 'done' : 'active');
      counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1);
    }),
    { numRuns: CASES },
  );
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThanOrEqual(CASES);
  for (const end of [...Object.keys(wayOf), 'undefined'])
    expect(counts.get(end) ?? 0, end).toBeGreaterThan(CASES / 100);
}, 180_000);

test('a run that is refused, or stopped wherever it is, leaves by the way that the original error and cause say', () => {
  fc.assert(
    fc.property(progress, runError, cancelCause, fc.boolean(), (begun, error, cause, isRefused) => {
      const begin = isRefused ? runEvents.refused(error, begun) : runEvents.accepted({ progress: begun });
      const { entered } = play([runEvents.stopped(cause), begin], { progress: begun });
      expect(entered).toEqual([wayOf[classifyCheckpointOutcome(error, cause)]]);
    }),
    { numRuns: 1_000 },
  );
});

test('events that come at the wrong time, twice or to a run that is over, give no run a second end', () => {
  fc.assert(
    fc.property(runStory, runStory, fc.integer({ min: 0, max: 12 }), (one, other, at) => {
      const events = [...one.events.slice(0, at), ...other.events, ...one.events];
      const { entered, verdicts, snapshot } = play(events);
      expect(entered.length).toBeLessThan(2);
      expect(entered).toEqual(verdicts.map((verdict) => wayOf[verdict]));
      expect(snapshot.status).toBe(entered.length === 1 ? 'done' : 'active');
    }),
    { numRuns: 1_000 },
  );
});
