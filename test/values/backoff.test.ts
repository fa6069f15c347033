import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { testClock } from '../../src/testing/index.ts';
import { type Backoff, backoffMs, lockBackoff, pause } from '../../src/values/backoff.ts';

const waits = (backoff: Backoff, random?: () => number) =>
  [1, 2, 3, 4, 5].map((retry) => backoffMs(retry, backoff, random));

describe('the waits between attempts', () => {
  test('double from the first wait up to the longest one', () => {
    expect(waits({ firstMs: 250, maxMs: 3_000 })).toEqual([250, 500, 1_000, 2_000, 3_000]);
  });

  test('grow by the factor that is asked for', () => {
    expect(waits({ firstMs: 50, factor: 4, maxMs: 750 })).toEqual([50, 200, 750, 750, 750]);
  });

  test('never exceed the longest wait, the first one included', () => {
    expect(waits({ firstMs: 250, maxMs: 100 })).toEqual([100, 100, 100, 100, 100]);
    expect(backoffMs(100_000, { firstMs: 1, maxMs: 200 })).toBe(200);
  });

  test('with full jitter are any whole number of ms from 0 to the wait', () => {
    const backoff: Backoff = { firstMs: 1_000, maxMs: 4_000, jitter: 'full' };
    expect(waits(backoff, () => 0)).toEqual([0, 0, 0, 0, 0]);
    expect(waits(backoff, () => 0.1234)).toEqual([123, 247, 494, 494, 494]);
    expect(waits(backoff, () => 0.999_999)).toEqual([1_000, 2_000, 4_000, 4_000, 4_000]);
  });

  test('of processes that poll one lock differ by half of the wait, and are never 0', () => {
    expect(waits(lockBackoff, () => 0)).toEqual([1, 2, 4, 8, 16]);
    expect(waits(lockBackoff, () => 0.5)).toEqual([2, 4, 8, 16, 32]);
    expect(backoffMs(20, lockBackoff, () => 0.999_999)).toBeCloseTo(300, 2);
  });
});

describe('a pause', () => {
  async function paused(ms: number) {
    const clock = testClock(0);
    const controller = new AbortController();
    const state = { isOver: false };
    void pause(ms, clock, controller.signal).then(() => {
      state.isOver = true;
    });
    return { clock, controller, state };
  }

  test('ends after its time, and leaves no listener on the signal', async () => {
    const { clock, controller, state } = await paused(100);
    await clock.advance(99);
    expect(state.isOver).toBe(false);
    await clock.advance(1);
    expect(state.isOver).toBe(true);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('ends at once when its signal is aborted, before or during it', async () => {
    const { clock, controller, state } = await paused(Number.POSITIVE_INFINITY);
    await clock.advance(1_000_000);
    expect(state.isOver).toBe(false);
    controller.abort();
    await clock.advance(0);
    expect(state.isOver).toBe(true);
    await expect(pause(1_000, clock, controller.signal)).resolves.toBeUndefined();
  });
});
