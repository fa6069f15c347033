import fc from 'fast-check';
import type { Message } from 'pawl';
import { splitForCompaction } from 'pawl/stores/kit';
import { arbitraries } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { faultOf, history, said, step } from './histories.ts';

describe('splitForCompaction', () => {
  test('takes the middle out, and keeps both ends (executor 19)', () => {
    const messages = history(10);
    const { first, middle, last } = splitForCompaction(messages, { keepFirst: 1, keepLast: 4 });
    expect([first.length, middle.length, last.length]).toEqual([1, 16, 4]);
    expect([...first, ...middle, ...last]).toEqual(messages);
  });

  test('keeps more where a cut would part a call from its result (executor 17)', () => {
    const messages = history(5);
    const lengths = (keepFirst: number, keepLast: number) =>
      Object.values(splitForCompaction(messages, { keepFirst, keepLast })).map(({ length }) => length);
    expect(lengths(2, 3)).toEqual([3, 4, 4]);
    expect(lengths(3, 4)).toEqual([3, 4, 4]);
    expect(lengths(1, 0)).toEqual([1, 10, 0]);
  });

  test('the opening message always stays (executor 19)', () => {
    expect(splitForCompaction(history(3), { keepFirst: 0, keepLast: 0 }).first).toHaveLength(1);
  });

  test('leaves nothing in the middle of a short history (executor 19)', () => {
    const messages = [said('Hi.'), ...step('look', {}, 'a')];
    expect(splitForCompaction(messages, { keepFirst: 1, keepLast: 8 })).toEqual({
      first: messages.slice(0, 1),
      middle: [],
      last: messages.slice(1),
    });
    expect(splitForCompaction([], { keepFirst: 1, keepLast: 8 })).toEqual({ first: [], middle: [], last: [] });
  });

  test('keeps a step together whose results came in two messages (executor 17)', () => {
    const [turn, results] = [...step('look', {}, 'a')] as [Message, Message];
    const messages = [said('Hi.'), turn, results, { role: 'tool' as const, content: [] }, said('And?')];
    const { middle, last } = splitForCompaction(messages, { keepFirst: 1, keepLast: 2 });
    expect([middle.length, last.length]).toEqual([0, 4]);
  });

  test('a call that waits for its result at the end is kept with it (executor 17)', () => {
    const messages = [said('Hi.'), said('Well?'), ...step('look', {}, 'a').slice(0, 1)];
    const { middle, last } = splitForCompaction(messages, { keepFirst: 1, keepLast: 0 });
    expect([middle.length, last.length]).toEqual([1, 1]);
  });

  test('calls that the provider ran itself need no result of ours (executor 17)', () => {
    const call = { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: {}, providerExecuted: true } as const;
    const messages = [said('Hi.'), { role: 'assistant' as const, content: [call] }, said('And?'), said('Well?')];
    expect(splitForCompaction(messages, { keepFirst: 2, keepLast: 1 }).middle).toEqual([said('And?')]);
  });

  test('in no history, cut wherever, a call is parted from its results (executor 17)', () => {
    let taken = 0;
    const cuts = { keepFirst: fc.nat(6), keepLast: fc.nat(12) };
    const property = fc.property(arbitraries(fc).transcript, fc.record(cuts), (messages, keep) => {
      const { first, middle, last } = splitForCompaction(messages, keep);
      expect([...first, ...middle, ...last]).toEqual(messages);
      for (const part of [first, middle, last, [...first, ...last]]) expect(faultOf(part)).toBeUndefined();
      expect(first.length).toBeGreaterThanOrEqual(Math.min(messages.length, Math.max(1, keep.keepFirst)));
      if (middle.length > 0) expect(last.length).toBeGreaterThanOrEqual(keep.keepLast);
      taken += middle.length;
    });
    fc.assert(property, { numRuns: torture > 1 ? 1_000 : 50 });
    expect(taken).toBeGreaterThan(40);
  });
});
