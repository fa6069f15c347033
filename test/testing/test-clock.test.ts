import { testClock } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';

describe('a test clock', () => {
  test('stands still until a test moves it; then wall clock and monotonic clock move together', async () => {
    const clock = testClock(1_000);
    expect([clock.now(), clock.monotonic()]).toEqual([1_000, 0]);
    await clock.advance(250);
    expect([clock.now(), clock.monotonic()]).toEqual([1_250, 250]);
    expect(testClock().now()).toBe(0);
  });

  test('fires timers in the order in which they are due, each at its own time', async () => {
    const clock = testClock();
    const fired: string[] = [];
    const set = (name: string, ms: number) => clock.setTimeout(() => fired.push(`${name}@${clock.monotonic()}`), ms);
    set('late', 300);
    set('first of two', 100);
    set('second of two', 100);
    set('at once', 0);
    set('negative', -5);
    await clock.advance(0);
    expect(fired).toEqual(['at once@0', 'negative@0']);
    await clock.advance(299);
    expect(fired.slice(2)).toEqual(['first of two@100', 'second of two@100']);
    await clock.advance(1);
    expect(fired.at(-1)).toBe('late@300');
    expect(clock.now()).toBe(300);
  });

  test('a timer that is cleared never fires, and one that fired is gone', async () => {
    const clock = testClock();
    let fired = 0;
    const timer = clock.setTimeout(() => fired++, 10);
    clock.setTimeout(() => fired++, 10);
    expect(clock.pending).toBe(2);
    clock.clearTimeout(timer);
    clock.clearTimeout(undefined);
    await clock.advance(1_000);
    expect([fired, clock.pending]).toEqual([1, 0]);
  });

  test('promise callbacks run between timers, and timers that they set fire in the same advance', async () => {
    const clock = testClock();
    const log: string[] = [];
    const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
    const worker = async () => {
      for (let i = 0; i < 3; i++) {
        await sleep(10);
        await Promise.resolve().then(() => {});
        log.push(`woke ${clock.monotonic()}`);
      }
    };
    const done = worker();
    clock.setTimeout(() => log.push('timer 15'), 15);
    await clock.advance(30);
    await done;
    expect(log).toEqual(['woke 10', 'timer 15', 'woke 20', 'woke 30']);
  });

  test('a jump of the wall clock moves nothing else', async () => {
    const clock = testClock(5_000);
    let fired = 0;
    clock.setTimeout(() => fired++, 100);
    clock.wallJump(-4_000);
    await clock.advance(99);
    expect([clock.now(), clock.monotonic(), fired]).toEqual([1_099, 99, 0]);
    clock.wallJump(1e9);
    await clock.advance(1);
    expect([clock.now(), fired]).toEqual([1e9 + 1_100, 1]);
  });

  test('the wall clock goes with the monotonic one, however short the steps are', async () => {
    const clock = testClock(1_700_000_000_000);
    // Each is below the precision of such a time.
    for (let step = 0; step < 1_000; step++) await clock.advance(0.0001);
    expect(clock.now() - 1_700_000_000_000).toBeCloseTo(0.1, 3);
  });

  test('moves under fake timers of a test framework too', async () => {
    vi.useFakeTimers();
    try {
      const clock = testClock();
      await clock.advance(10);
      expect(clock.now()).toBe(10);
    } finally {
      vi.useRealTimers();
    }
  });
});
