import { runMachine } from 'pawl/machines';
import { freshProgress, runEvents } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';

const phases = ['first', 'second'].map((name) => ({
  ...{ name, hash: name, maxSteps: 4, isBare: false, isOptional: false, fallback: '', recovery: 'step' as const },
}));
const machine = runMachine({ id: 'worker', phases: [{ name: 'first' }, { name: 'second' }] });
type Event = Parameters<typeof transition<typeof machine>>[2];

/** A run after some events. */
function runAfter(...events: readonly Event[]) {
  let [run] = initialTransition(machine, { progress: freshProgress() });
  for (const event of events) [run] = transition(machine, run, event);
  return run;
}

const asks = (...ids: readonly string[]) =>
  runEvents.replied({ calls: ids.map((callId) => ({ callId, name: 'look' })) }) as Event;
const found = (place: number, id: string) => runEvents.toolAnswered(place, id, `found ${place}`) as Event;
const accepted = runEvents.accepted({ phases }) as Event;
const said = runEvents.replied({ text: 'Next.' }) as Event;
const resultsOf = (run: ReturnType<typeof runAfter>) =>
  JSON.stringify(run.context.progress.transcript.slice().at(-1)).match(/found \d/g);

describe('runEvents.toolAnswered', () => {
  test.for<[string, readonly Event[]]>([
    ['the first phase', [accepted]],
    ['a later phase, whose calls have longer ids', [accepted, asks('c1'), found(0, 'c1'), said]],
  ])('takes the id that the model gave its call, in %s (edges 23)', ([, events]) => {
    const run = runAfter(...events, asks('c1', 'c2'), found(1, 'c2'), found(0, 'c1'));
    expect(run.context.progress.openStep).toBeUndefined();
    expect(resultsOf(run)).toEqual(['found 0', 'found 1']);
  });

  test('takes an id that the turn before had too, and one that a turn has twice (edges 23)', () => {
    const again = runAfter(accepted, asks('c1'), found(0, 'c1'), asks('c1', 'c1'), found(0, 'c1'), found(1, 'c1'));
    expect(again.context.progress.openStep).toBeUndefined();
    expect(resultsOf(again)).toEqual(['found 0', 'found 1']);
  });

  test.for(['c3', '', 'c', 'c1-p2'])('throws a TypeError for %j, which no open call has (edges 23)', (id) => {
    expect(() => runAfter(accepted, asks('c1', 'c2'), found(0, id))).toThrow(TypeError);
  });

  test('throws a TypeError for a call that has answered (edges 23)', () => {
    expect(() => runAfter(accepted, asks('c1', 'c2'), found(0, 'c1'), found(0, 'c1'))).toThrow(TypeError);
  });
});
