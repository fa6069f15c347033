import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addSpend, noSpend } from '../../src/values/usage.ts';

const sum = (amounts: readonly number[]) =>
  amounts.reduce((total, usd) => addSpend(total, { tokens: 1, usd, seconds: usd }), noSpend);

describe('the sum of what a run spent', () => {
  test('has no digits that come from adding binary fractions (edges, small)', () => {
    expect(sum([0.1, 0.2])).toEqual({ tokens: 2, usd: 0.3, seconds: 0.3 });
    expect(sum(Array.from({ length: 1_000 }, () => 0.001)).usd).toBe(1);
  });

  test('is the decimal sum of prices in billionths of a dollar, in any order', () => {
    const price = fc.integer({ min: 0, max: 10_000_000_000 });
    fc.assert(
      fc.property(fc.array(price, { maxLength: 50 }), (billionths) => {
        const whole = billionths.reduce((a, b) => a + b, 0) / 1e9;
        expect(sum(billionths.map((each) => each / 1e9)).usd).toBe(whole);
        expect(sum(billionths.map((each) => each / 1e9).reverse()).usd).toBe(whole);
      }),
    );
  });

  test('keeps amounts that are too large for such digits, and what is taken away again leaves 0', () => {
    expect(sum([12_345_678_901.5, 0.5]).usd).toBe(12_345_678_902);
    expect(sum([0.1, 0.2, -0.3]).usd).toBe(0);
  });
});
