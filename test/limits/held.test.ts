import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HeldCall, HeldCalls } from '../../src/executor/services/held-calls.ts';
import { callTool, reply } from '../../src/testing/index.ts';
import { limitedHost } from './limited.ts';

/** A test clock whose open timers are known. */
function countedClock() {
  const clock = testClock(0);
  const timers = new Map<unknown, number>();
  const setTimeout: typeof clock.setTimeout = (callback, ms) => {
    const timer = clock.setTimeout(() => {
      timers.delete(timer);
      callback();
    }, ms);
    timers.set(timer, ms);
    return timer;
  };
  const clearTimeout = (timer: unknown) => {
    timers.delete(timer);
    clock.clearTimeout(timer);
  };
  return { timers, clock: { ...clock, setTimeout, clearTimeout } };
}

/** Held calls, and which of them are over. */
function holding() {
  const { clock, timers } = countedClock();
  const held = new HeldCalls(clock);
  const over: number[] = [];
  const calls = new Map<number, HeldCall>();
  const begin = clock.monotonic();
  const hold = (ms: number) => void held.hold(begin + ms, (call) => calls.set(ms, call)).then(() => over.push(ms));
  return { clock, held, timers, over, calls, hold };
}

describe('requests that are held until their turns', () => {
  test('share one timer, also ten thousand of them, and each ends at its own time (failover 28)', async () => {
    const { clock, timers, over, hold } = holding();
    for (let i = 10_000; i > 0; i--) hold(i * 10);
    expect(timers.size).toBe(1);
    await clock.advance(35);
    expect(over).toEqual([10, 20, 30]);
    expect(timers.size).toBe(1);
    await clock.advance(100_000);
    expect(over).toHaveLength(10_000);
    expect(over).toEqual(over.toSorted((a, b) => a - b));
    expect(timers.size).toBe(0);
  });

  test('end at once when their runs are stopped, and the others stay (failover 19, 28)', async () => {
    const { clock, held, timers, over, calls, hold } = holding();
    for (const ms of [10, 20, 30]) hold(ms);
    for (const ms of [10, 30]) held.release(calls.get(ms) as HeldCall);
    await clock.advance(0);
    expect(over).toEqual([10, 30]);
    held.release(calls.get(10) as HeldCall);
    await clock.advance(20);
    expect(over).toEqual([10, 30, 20]);
    expect(timers.size).toBe(0);
  });

  test('of a run that is cancelled are given up at once (failover 19)', async () => {
    const { clock, timers } = countedClock();
    const rules = [{ by: 'model', requestsPerMinute: 1 }] as const;
    const play = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('done')];
    const host = limitedHost({ rules, play, holdMs: Number.POSITIVE_INFINITY, clock });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    const untilTurn = () => [...timers.values()].filter((ms) => ms > 59_000 && ms < 60_000).length;
    expect([host.at.length, untilTurn()]).toEqual([2, 1]);
    await host.executor.control('r').cancel();
    await host.clock.advance(10);
    expect((await run.result).status).toBe('cancelled');
    expect([host.at.length, untilTurn()]).toEqual([2, 0]);
  });
});
