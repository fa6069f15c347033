import { type Prices, priceOfCalls } from '../budget/prices.ts';
import type { Budget, Usage } from '../index.ts';

/** What one model call has cost. */
export interface Paid {
  readonly usage: Usage;
  /** US dollars; 0 where nobody has said what the model costs. */
  readonly usd: number;
}

/**
 * A budget that refuses nobody: it tells each run what its calls have cost, so that the sum is in the record of the run, and
 * goes on after a crash. Runs carry the id of their model as their caller.
 * @throws {TypeError} when a price is none
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
