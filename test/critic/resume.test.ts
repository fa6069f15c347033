import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/values/json.ts';
import { watched } from './supervised-run.ts';

const throughJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as JsonObject;

describe('the state of a critic', () => {
  test('is empty as long as nothing has happened (supervision 3)', async () => {
    const { run, handle } = watched(() => null);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(99);
    expect(handle.state()).toEqual({});
  });

  test('is plain JSON with what was granted, and the next process continues with it (supervision 3)', async () => {
    const first = watched(() => ({ nudge: 'Go on.', extendByMs: 500, raiseStepsBy: 2 }));
    await first.run.clock.advance(100);
    const saved = throughJson(first.handle.state());
    expect(saved).toEqual({
      extendedToMs: 600,
      raisedSteps: 2,
      alarms: 1,
      alarmsInStep: 1,
      nudges: 1,
      nudgedAtStep: 0,
    });

    // The process worked until 250 ms; the time until the next one began does not count.
    const second = watched(() => null, { before: 250, saved });
    await second.run.clock.advance(349);
    expect(second.shown).toEqual([]);
    await second.run.clock.advance(1);
    expect(second.shown).toMatchObject([
      { elapsedMs: 600, alarms: 2, alarmsInStep: 2, nudges: 1, nudgedAtStep: 0, raisedSteps: 2 },
    ]);
    // What was granted before is the run's already: it is not granted again.
    expect(second.run.done).toEqual([]);
  });

  test('a resume is a sign of life: a run past its limit is not alarmed before it could do anything (supervision 3)', async () => {
    const { run, shown } = watched(() => null, { before: 5_000 });
    await run.clock.advance(19);
    expect(shown).toEqual([]);
    await run.clock.advance(1);
    expect(shown).toMatchObject([{ idleMs: 20, elapsedMs: 5_020 }]);
  });

  test('a soft limit that a deploy has put behind what was granted counts (supervision 3)', async () => {
    const { run, shown } = watched(() => null, { softLimitMs: 900, saved: { extendedToMs: 600 } });
    await run.clock.advance(899);
    expect(shown).toEqual([]);
    await run.clock.advance(1);
    expect(shown).toHaveLength(1);
  });

  test('a run that is killed at every save ends up with the counts of the uninterrupted one (supervision 3)', async () => {
    const answer = () => ({ nudge: 'Go on.', raiseStepsBy: 1, extendByMs: 30 });
    const whole = watched(answer);
    await whole.run.clock.advance(1_000);

    let saved: JsonObject = {};
    let before = 0;
    for (; before < 1_000; before += 30) {
      const part = watched(answer, { before: before === 0 ? 0 : before + 70, saved, clock: testClock() });
      await part.run.clock.advance(before === 0 ? 100 : 30);
      saved = throughJson(part.handle.state());
    }
    const { nudges, raisedSteps, alarms } = whole.handle.state();
    expect(saved).toMatchObject({
      raisedSteps: Number(raisedSteps) + 3,
      nudges: Number(nudges) + 3,
      alarms: Number(alarms) + 3,
    });
  });

  test('a kill is sticky across a crash: the next process carries it out at once (supervision 2)', async () => {
    const first = watched(() => ({ kill: true, reason: 'enough' }));
    await first.run.clock.advance(100);
    const saved = throughJson(first.handle.state());
    const second = watched(() => null, { before: 100, saved });
    await second.run.clock.advance(0);
    expect(second.run.done).toEqual(['kill: enough']);
    expect(second.shown).toEqual([]);
  });

  test.for([
    ['a text', 'nudge'],
    ['a list', [1]],
    ['null', null],
    ['a negative count', { alarms: -1 }],
    ['a limit that is no number', { extendedToMs: 'soon', alarms: 4 }],
    ['what is beyond all numbers', { extendedToMs: Number.POSITIVE_INFINITY, nudges: 2 }],
    ['an empty verdict', { verdict: '' }],
    ['fields of somebody else', { weather: 'fine', __proto__: { alarms: 3 } }],
  ])('%s in its place is a fresh start (supervision 3)', async ([, saved]) => {
    const { run, handle, shown } = watched(() => null, { saved: saved as never });
    expect(handle.state()).toEqual({});
    await run.clock.advance(100);
    expect(shown).toMatchObject([{ alarms: 1, nudges: 0, elapsedMs: 100 }]);
  });

  test('is what the decision made of it when the decision reaches the run (supervision 3)', async () => {
    const states: JsonObject[] = [];
    const { run, handle } = watched(() => ({ raiseStepsBy: 2, nudge: 'Go on.' }));
    const { raiseSteps } = run;
    run.raiseSteps = (by) => {
      raiseSteps(by);
      states.push(handle.state());
    };
    await run.clock.advance(100);
    expect(states).toMatchObject([{ raisedSteps: 2, nudges: 1 }]);
  });
});
