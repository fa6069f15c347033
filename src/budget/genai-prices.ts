// The entry point `pawl/prices`: the prices of the package @pydantic/genai-prices.
import { pricesOf } from './price-package.ts';
import type { PricedCall } from './prices.ts';

/**
 * Prices for a budget, from the list in the package `@pydantic/genai-prices`; update that package to update the list. It
 * knows the models of the large providers, their caches, and prices that depend on the size of a request. Unknown models
 * have no price.
 *
 * @throws {UNSUPPORTED} when the package is not installed
 * @example createBudget({ usd: 5, prices: await genaiPrices() })
 */
export async function genaiPrices(): Promise<(call: PricedCall) => number | undefined> {
  return pricesOf(() => import('@pydantic/genai-prices'));
}
