import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { info, playedRun, usage, watched } from './supervised-run.ts';

const nothing = () => null;
const step = (...tools: string[]) => ({ type: 'step', step: 1, tools }) as const;

describe('the alarm', () => {
  test('silence before the soft limit raises no alarm (supervision 1)', async () => {
    const { run, shown } = watched(nothing);
    await run.clock.advance(99);
    expect(shown).toEqual([]);
    await run.clock.advance(1);
    expect(shown).toMatchObject([{ reason: 'idle', elapsedMs: 100, idleMs: 100 }]);
  });

  test('a run that shows signs of life beyond the soft limit raises none (supervision 1)', async () => {
    const { run, handle, shown } = watched(nothing);
    for (let i = 0; i < 30; i++) {
      await run.clock.advance(19);
      handle.onActivity(i % 3 === 0 ? { type: 'delta' } : i % 3 === 1 ? { type: 'tool', name: 'look' } : step('look'));
    }
    expect(shown).toEqual([]);
    await run.clock.advance(20);
    expect(shown).toHaveLength(1);
  });

  test('there is one alarm per idle period, and activity arms the next (supervision 1)', async () => {
    const { run, handle, shown } = watched(nothing);
    await run.clock.advance(1_000);
    expect(shown).toHaveLength(1);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(19);
    expect(shown).toHaveLength(1);
    await run.clock.advance(1);
    expect(shown).toHaveLength(2);
    await run.clock.advance(1_000);
    expect(shown.map(({ alarms, elapsedMs }) => [alarms, elapsedMs])).toEqual([
      [1, 100],
      [2, 1_020],
    ]);
  });

  test('an extension moves the soft limit from now on, and the alarm comes back when it is over (supervision 1)', async () => {
    const { run, shown } = watched(({ alarms }) => (alarms === 1 ? { extendByMs: 300 } : null));
    await run.clock.advance(399);
    expect(shown).toHaveLength(1);
    await run.clock.advance(1);
    expect(shown.map(({ elapsedMs }) => elapsedMs)).toEqual([100, 400]);
    await run.clock.advance(5_000);
    expect(shown).toHaveLength(2);
  });

  test('an extension that is shorter than what was granted before takes nothing back (supervision 1)', async () => {
    const answers = [{ extendByMs: 1_000 }, { extendByMs: 5 }];
    const { run, handle, shown } = watched(() => answers.shift() ?? null);
    await run.clock.advance(100);
    void handle.onOutOfSteps();
    await run.clock.advance(999);
    expect(shown.map(({ reason }) => reason)).toEqual(['idle', 'steps']);
    await run.clock.advance(1);
    expect(shown.map(({ elapsedMs }) => elapsedMs)).toEqual([100, 100, 1_100]);
  });

  test('the backstop ends a run that is granted time without end, and counts earlier processes in (supervision 1)', async () => {
    const { run, shown } = watched(() => ({ extendByMs: 1_000_000 }), { before: 9_000 });
    await run.clock.advance(999);
    expect(run.done).toEqual([]);
    await run.clock.advance(1);
    expect(run.done).toEqual(['kill: 10000 ms of working time are used up (backstopMs)']);
    expect(shown).toHaveLength(1);
    expect(run.clock.pending).toBe(0);
  });

  test('the backstop is 24 hours of working time where the host says nothing (supervision 3)', async () => {
    const { run } = watched(() => null, { options: { backstopMs: undefined as never } });
    await run.clock.advance(24 * 3_600_000 - 1);
    expect(run.done).toEqual([]);
    await run.clock.advance(1);
    expect(run.done).toHaveLength(1);
  });

  test('the backstop does not wait for an escalator that thinks (supervision 1)', async () => {
    const { run } = watched(() => new Promise(() => {}), {
      before: 9_990,
      options: { askTimeoutMs: 60_000 },
    });
    await run.clock.advance(10);
    expect(run.done).toEqual(['kill: 10000 ms of working time are used up (backstopMs)']);
    expect(run.clock.pending).toBe(0);
  });
});

describe('the escalator is shown', () => {
  test('iterations, the last activity, the idle time, the last tool, usage and the tail (supervision 1)', async () => {
    const run = playedRun({ before: 40 });
    const messages = Array.from({ length: 40 }, (_, i) => ({
      role: 'user' as const,
      content: [{ type: 'text' as const, text: `m${i}` }],
    }));
    run.messages = messages;
    const { handle, shown } = watched(nothing, { run });
    run.iteration = 2;
    await run.clock.advance(30);
    handle.onActivity(step('look', 'read'));
    handle.onActivity({ type: 'tool', name: 'write' });
    await run.clock.advance(50);
    expect(shown).toEqual([
      {
        runId: 'r',
        reason: 'idle',
        iterations: 2,
        maxIterations: info.maxIterations,
        lastActivityAt: 1_000_030,
        idleMs: 30,
        elapsedMs: 100,
        lastTool: 'write',
        usage,
        tail: messages.slice(-32),
        alarms: 1,
        alarmsInStep: 1,
        nudges: 0,
        raisedSteps: 0,
        failures: 0,
      },
    ]);
    expect(Object.isFrozen(shown[0])).toBe(true);
  });

  test('a finished step begins the count of its alarms again, other signs of life do not (supervision 1)', async () => {
    const { run, handle, shown } = watched(nothing);
    await run.clock.advance(100);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(20);
    handle.onActivity(step());
    await run.clock.advance(20);
    expect(shown.map(({ alarms, alarmsInStep }) => [alarms, alarmsInStep])).toEqual([
      [1, 1],
      [2, 2],
      [3, 1],
    ]);
  });
});

describe('the timers of a critic', () => {
  test('there is one for a run that works, and none once it is over (supervision 3)', async () => {
    const { run, handle, shown } = watched(nothing);
    expect(run.clock.pending).toBe(1);
    for (let i = 0; i < 50; i++) {
      handle.onActivity({ type: 'delta' });
      await run.clock.advance(15);
    }
    expect(run.clock.pending).toBe(1);
    handle.stop();
    expect(run.clock.pending).toBe(0);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(100_000);
    expect(shown).toEqual([]);
  });

  test('a question under way is given up when the run is over, and its signal says so (supervision 3)', async () => {
    const asked: AbortSignal[] = [];
    const { run, handle } = watched(nothing, {
      options: {
        escalator: (_, signal) => {
          asked.push(signal);
          return new Promise(() => {});
        },
      },
    });
    await run.clock.advance(100);
    expect(asked.map(({ aborted }) => aborted)).toEqual([false]);
    handle.stop();
    await run.clock.advance(0);
    expect(asked.map(({ aborted }) => aborted)).toEqual([true]);
    expect(run.clock.pending).toBe(0);
    expect(run.done).toEqual([]);
  });

  test('all of it goes by the clock of the run (supervision 1)', async () => {
    const [clock, other] = [testClock(), testClock()];
    const { shown } = watched(nothing, { clock });
    await other.advance(100_000);
    expect(shown).toEqual([]);
    await clock.advance(100);
    expect(shown).toHaveLength(1);
  });
});
