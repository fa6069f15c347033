import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunEvent } from '../../../src/run/events/body.ts';
import { noText, placeAfter, type TextView, textAfter, unread } from '../../../src/run/journal/reply-view.ts';

type Delta = Extract<RunEvent, { type: 'model.delta' }>;
const said = (text: string, at: Partial<Pick<Delta, 'step' | 'block' | 'offset' | 'kind'>> = {}): Delta => ({
  type: 'model.delta',
  ...{ step: 1, block: 0, offset: 0, kind: 'text', text },
  ...{ runId: 'r', seq: 1, at: 0 },
  ...at,
});
const seen = (...pieces: readonly Delta[]) => pieces.reduce<TextView>(textAfter, noText);

describe('a piece of a reply', () => {
  test('adds what its reader does not have of it: all, the rest, or nothing', () => {
    expect(unread(0, said('abc'))).toBe('abc');
    expect(unread(2, said('abc'))).toBe('c');
    expect(unread(5, said('abc'))).toBe('');
    expect(unread(3, said('de', { offset: 3 }))).toBe('de');
  });

  test('adds nothing after a gap, in a block that has begun or in a new one', () => {
    expect(unread(2, said('d', { offset: 3 }))).toBe('');
    expect(unread({ block: 0, offset: 2 }, said('d', { block: 1, offset: 3 }))).toBe('');
    expect(unread({ block: 0, offset: 2 }, said('d', { block: 1 }))).toBe('d');
  });

  test('of an earlier block than the one that is read adds nothing', () => {
    expect(unread({ block: 2, offset: 1 }, said('abc', { block: 1 }))).toBe('');
  });

  test('ends behind its text', () => {
    expect(placeAfter(said('abc', { block: 2, offset: 4 }))).toEqual({ block: 2, offset: 7 });
  });
});

describe('the text of a step', () => {
  test('is the text of all blocks, without reasoning', () => {
    const view = seen(said('Hm.', { kind: 'reasoning' }), said('One ', { block: 1 }), said('two.', { block: 2 }));
    expect(view.text).toBe('One two.');
  });

  test('takes the place of the text of an earlier step with its first piece', () => {
    expect(seen(said('Look.'), said('Hm.', { step: 2, kind: 'reasoning' })).text).toBe('Look.');
    expect(seen(said('Look.'), said('Do', { step: 2 })).text).toBe('Do');
  });

  test('stays after a reset until the pieces come again', () => {
    const reset = textAfter(seen(said('Lo')), { type: 'step.reset', step: 1, runId: 'r', seq: 2, at: 0 });
    expect(reset.text).toBe('Lo');
    expect(textAfter(reset, said('Do')).text).toBe('Do');
  });

  test('is the beginning of what the model says, whichever pieces are lost or come again', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(sizes, fc.array(fc.nat(30), { maxLength: 20 }), (lengths, order) => {
        const pieces: Delta[] = [];
        let [whole, block, offset] = ['', 0, 0];
        for (const [i, length] of lengths.entries()) {
          const text = 'abcd'.slice(0, length);
          pieces.push(said(text, { block, offset }));
          whole += text;
          [block, offset] = i % 4 === 3 ? [block + 1, 0] : [block, offset + length];
        }
        expect(seen(...pieces).text).toBe(whole);
        const within = pieces.filter((piece) => piece.block === 0);
        const some = order.flatMap((i) => within[i % within.length] ?? []);
        expect(whole.startsWith(seen(...some).text)).toBe(true);
      }),
    );
  });
});
