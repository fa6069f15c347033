import { createCritic } from 'pawl';
import { describe, expect, test } from 'vitest';
import { watched } from './supervised-run.ts';

describe('what an escalator decides', () => {
  test('is a nudge, an extension, more steps, a kill with its reason, or nothing (supervision 1)', async () => {
    const answers: unknown[] = [{ nudge: 'Go on.', raiseStepsBy: 4 }, undefined, {}, { kill: true, reason: 'enough' }];
    const { run, handle } = watched(() => answers.shift());
    for (let i = 0; i < 4; i++) {
      await run.clock.advance(100);
      handle.onActivity({ type: 'delta' });
    }
    expect(run.done).toEqual(['raise: 4', 'nudge: Go on.', 'kill: enough']);
  });

  test('is final when it is a kill: nothing is asked or done after it, and no timer is left (supervision 2)', async () => {
    const { run, handle, shown } = watched(() => ({ kill: true, nudge: 'unsaid', raiseStepsBy: 3, extendByMs: 9 }));
    await run.clock.advance(100);
    expect(run.done).toEqual(['kill: no reason given']);
    handle.onActivity({ type: 'delta' });
    await handle.onOutOfSteps();
    await run.clock.advance(100_000);
    handle.stop();
    expect(run.done).toEqual(['kill: no reason given']);
    expect(shown).toHaveLength(1);
    expect(run.clock.pending).toBe(0);
  });

  test('is asked for when the steps are used up, and the run gets it before it continues (supervision 2)', async () => {
    const { run, handle, shown } = watched(() => ({ raiseStepsBy: 4 }));
    await handle.onOutOfSteps();
    expect(run.done).toEqual(['raise: 4']);
    expect(run.tallies().maxIterations).toBe(9);
    expect(shown).toMatchObject([{ reason: 'steps', maxIterations: 5, raisedSteps: 0, alarms: 0 }]);
    await handle.onOutOfSteps();
    expect(shown[1]).toMatchObject({ raisedSteps: 4, maxIterations: 9 });
  });

  test('leaves the step limit as it is when it is nothing (supervision 2)', async () => {
    const { run, handle } = watched(() => null);
    await handle.onOutOfSteps();
    expect(run.done).toEqual([]);
  });

  test('about steps waits for the answer about silence, and both are given (supervision 2)', async () => {
    const answers: ((decision: unknown) => void)[] = [];
    const { run, handle, shown } = watched(() => new Promise((resolve) => answers.push(resolve)));
    await run.clock.advance(100);
    let isSettled = false;
    void handle.onOutOfSteps().then(() => {
      isSettled = true;
    });
    answers[0]?.({ nudge: 'Hello?' });
    await run.clock.advance(0);
    expect([isSettled, shown.map(({ reason }) => reason)]).toEqual([false, ['idle', 'steps']]);
    answers[1]?.({ raiseStepsBy: 1 });
    await run.clock.advance(0);
    expect([isSettled, run.done]).toEqual([true, ['nudge: Hello?', 'raise: 1']]);
  });

  test('is waited for without looking at the clock all the time, also in a silence (supervision 1)', async () => {
    const { run, handle } = watched(() => new Promise(() => {}), { options: { askTimeoutMs: 5_000 } });
    let timers = 0;
    const { setTimeout } = run.clock;
    run.clock.setTimeout = (callback, ms) => {
      timers += 1;
      if (timers > 20) throw new Error('a loop of timers');
      return setTimeout(callback, ms);
    };
    await run.clock.advance(90);
    void handle.onOutOfSteps();
    await run.clock.advance(1_000);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(1_000);
    expect(run.clock.pending).toBe(2);
  });

  test('is not waited for by a run that is over (supervision 2)', async () => {
    const { run, handle } = watched(() => new Promise(() => {}));
    const waiting = handle.onOutOfSteps();
    await run.clock.advance(1);
    handle.stop();
    await waiting;
    expect(run.done).toEqual([]);
    expect(run.clock.pending).toBe(0);
  });

  test('is not said twice before the model can have heard it (supervision 2)', async () => {
    const { run, handle } = watched(({ alarms }) => ({ nudge: alarms < 5 ? 'Hurry.' : 'Stop.', extendByMs: 50 }));
    await run.clock.advance(200);
    expect(run.done).toEqual(['nudge: Hurry.']);
    run.iteration = 1;
    await run.clock.advance(50);
    expect(run.done).toEqual(['nudge: Hurry.', 'nudge: Hurry.']);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(150);
    expect(run.done).toEqual(['nudge: Hurry.', 'nudge: Hurry.', 'nudge: Stop.']);
  });
});

describe('createCritic', () => {
  const silent = () => null;
  test.for([
    ['no escalator', {}],
    ['an escalator that is none', { escalator: 'kill them all' }],
    ['an idle time of zero', { escalator: silent, idleMs: 0 }],
    ['a backstop that never comes', { escalator: silent, backstopMs: Number.POSITIVE_INFINITY }],
    ['a deadline that is no number', { escalator: silent, askTimeoutMs: '5' }],
  ] as const)('refuses %s', ([, options]) => {
    expect(() => createCritic(options as never)).toThrow(TypeError);
  });

  test('refuses to be called without options, and says what it needs', () => {
    expect(() => createCritic(undefined as never)).toThrow('createCritic needs an escalator');
  });
});
