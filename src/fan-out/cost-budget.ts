import { type Prices, priceOfCalls } from '../budget/prices.ts';
import type { Budget, Usage } from '../index.ts';

/** The cost of one model call. */
export interface Paid {
  readonly usage: Usage;
  /** US dollars; 0 if the model has no price. */
  readonly usd: number;
}

/**
 * Makes a budget that refuses no call and reports the cost of each call of a fan-out. It returns the cost of each call, so
 * that the run's record has the sum, also after a crash. The caller id of each run is the id of its model.
 * @throws {TypeError} if a price is invalid
 */
export function costsBy(prices: Prices | undefined, paid: (modelId: string, call: Paid) => void): Budget {
  const priceOf = prices ? priceOfCalls(prices) : () => 0;
  return {
    check: async () => {},
    reserve: async (callerId, { key, modelTier, model }) => ({ key, callerId, modelTier, model }),
    commit: async ({ callerId, modelTier, model }, { usage, seconds }) => {
      const usd = priceOf({ model, modelTier, usage }) ?? 0;
      paid(callerId, { usage, usd });
      return { tokens: usage.inputTokens + usage.outputTokens, usd, seconds };
    },
    refund: async () => {},
  };
}
