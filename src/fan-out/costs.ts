import { type Prices, priceOfCalls } from '../budget/prices.ts';
import type { Budget } from '../index.ts';

/**
 * A budget that refuses nobody: it tells each run what its calls have cost, so that the sum is in the record of the run, and
 * goes on after a crash. Runs carry the id of their model as their caller.
 * @throws {TypeError} when a price is none
 */
export function costsBy(prices: Prices, paid: (modelId: string, usd: number) => void): Budget {
  const priceOf = priceOfCalls(prices);
  return {
    check: async () => {},
    reserve: async (callerId, { key, modelTier, model }) => ({ key, callerId, modelTier, model }),
    commit: async ({ callerId, modelTier, model }, { usage, seconds }) => {
      const usd = priceOf({ model, modelTier, usage }) ?? 0;
      paid(callerId, usd);
      return { tokens: usage.inputTokens + usage.outputTokens, usd, seconds };
    },
    refund: async () => {},
  };
}
