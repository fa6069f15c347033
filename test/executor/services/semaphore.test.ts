import { fc, test as given } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import { Semaphore } from '../../../src/executor/services/recovery-limits.ts';
import { settle } from '../../fixtures/host.ts';

describe('a semaphore', () => {
  test('lets those in first who came first, and each only while fewer are in it than it said', async () => {
    const semaphore = new Semaphore();
    const order: string[] = [];
    const enter = (name: string, size: number) => void semaphore.enter(size, undefined).then(() => order.push(name));
    for (const [name, size] of Object.entries({ a: 2, b: 2, narrow: 1, c: 2, d: 2 })) enter(name, size);
    await settle(1);
    expect(order).toEqual(['a', 'b']);
    semaphore.leave();
    await settle(1);
    expect(order).toEqual(['a', 'b', 'c']);
    semaphore.leave();
    semaphore.leave();
    await settle(1);
    expect(order).toEqual(['a', 'b', 'c', 'd']);
    semaphore.leave();
    await settle(1);
    expect(order).toEqual(['a', 'b', 'c', 'd', 'narrow']);
  });

  given.prop([
    fc.array(fc.record({ size: fc.integer({ min: 1, max: 4 }), isAborted: fc.boolean() }), { maxLength: 30 }),
  ])(
    'has never more in it than the last that came in had said, gives those up who are aborted, and ends empty',
    async (guests) => {
      const semaphore = new Semaphore();
      let inside = 0;
      let admitted = 0;
      const waiting = guests.map(async ({ size, isAborted }) => {
        const controller = new AbortController();
        const entering = semaphore.enter(size, controller.signal);
        if (isAborted) controller.abort();
        if (!(await entering)) return expect(isAborted).toBe(true);
        admitted += 1;
        inside += 1;
        expect(inside).toBeLessThanOrEqual(size);
        await settle(1);
        inside -= 1;
        semaphore.leave();
      });
      await Promise.all(waiting);
      expect(admitted).toBeGreaterThanOrEqual(guests.filter(({ isAborted }) => !isAborted).length);
      expect(await semaphore.enter(1, undefined)).toBe(true);
      expect(await semaphore.enter(1, AbortSignal.abort())).toBe(false);
    },
  );
});
