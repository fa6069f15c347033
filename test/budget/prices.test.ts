import { createBudget, type Prices } from 'pawl';
import { describe, expect, test } from 'vitest';
import { priceOfCalls } from '../../src/budget/prices.ts';
import { noUsage } from '../../src/values/usage.ts';
import { call, use } from './stores.ts';

const usd = (prices: Prices, model: string, usage: Partial<typeof noUsage>) =>
  priceOfCalls(prices)({ model, modelTier: 'fast', usage: { ...noUsage, ...usage } });

describe('a price table', () => {
  const table: Prices = {
    'acme/small': { inputPerMillion: 2, outputPerMillion: 10 },
    'acme/large': { inputPerMillion: 3, outputPerMillion: 15, cachedInputPerMillion: 0.3, cacheWritePerMillion: 3.75 },
    'openai.chat/gpt': { inputPerMillion: 1, outputPerMillion: 1 },
  };

  test('gives reasoning no price of its own: it is part of the output (supervision 4)', () => {
    expect(usd(table, 'acme/small', { inputTokens: 1e6, outputTokens: 1e6, reasoningTokens: 9e5 })).toBe(12);
  });

  test('gives cached input its own price, or that of other input (supervision 4)', () => {
    const usage = { inputTokens: 1e6, cacheReadTokens: 5e5, cacheWriteTokens: 2e5 };
    expect(usd(table, 'acme/large', usage)).toBeCloseTo(0.9 + 0.15 + 0.75, 10);
    expect(usd(table, 'acme/small', usage)).toBe(2);
  });

  test('gives at least zero for any count of cached tokens (supervision 4)', () => {
    expect(usd(table, 'acme/small', { inputTokens: 0, cacheReadTokens: 1e6 })).toBe(2);
  });

  test('finds a provider that names its API, under the name of the API or without it (supervision 4)', () => {
    expect(usd(table, 'acme.messages/small', { inputTokens: 1e6 })).toBe(2);
    expect(usd(table, 'openai.chat/gpt', { inputTokens: 1e6 })).toBe(1);
    expect(usd(table, 'openai/gpt', { inputTokens: 1e6 })).toBe(undefined);
    expect(usd(table, 'acme/llama-3.1', {})).toBe(undefined);
  });

  test('is read once: what is changed in it later changes nothing (supervision 4)', () => {
    const price = { inputPerMillion: 2, outputPerMillion: 10 };
    const prices = { 'acme/small': price };
    const priceOf = priceOfCalls(prices);
    price.inputPerMillion = Number.NaN;
    expect(priceOf({ model: 'acme/small', modelTier: 'fast', usage: { ...noUsage, inputTokens: 1e6 } })).toBe(2);
  });
});

describe('a limit in dollars', () => {
  test.for([
    ['a model that is not in the table', {}, 'its price is not known'],
    ['a function that does not know', (): undefined => undefined, 'its price is not known'],
    [
      'a function that throws',
      () => {
        throw new Error('no list today');
      },
      'no list today',
    ],
    ['a function that gives NaN', () => Number.NaN, 'prices returned NaN'],
    [
      'a function that gives a promise',
      (): number => Promise.reject(new Error('x')) as never,
      'prices returned object',
    ],
  ] as const)('refuses a call without a price: %s (supervision 4)', async ([_, prices, reason]) => {
    const budget = createBudget({ usd: 1, prices: prices as Prices });
    const refusal = budget.reserve('ada', call('run', 1));
    await expect(refusal).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
    await expect(refusal).rejects.toThrow(reason);
    await expect(refusal).rejects.toThrow('acme/small');
  });

  test('counts what was reserved when the price is gone by the end of the call (supervision 4)', async () => {
    let price: number | undefined = 0.5;
    const budget = createBudget({ usd: 10, prices: () => price });
    const reservation = await budget.reserve('ada', call('run', 1));
    price = undefined;
    expect(await budget.commit(reservation, use(10, 10))).toEqual({ tokens: 20, usd: 0.5, seconds: 0 });
  });
});

test('without a limit in dollars a price that is not known counts nothing (supervision 4)', async () => {
  const budget = createBudget({ tokens: 1_000, prices: () => Number.NaN });
  expect(await budget.commit(await budget.reserve('ada', call('run', 1)), use(10))).toMatchObject({ usd: 0 });
});
