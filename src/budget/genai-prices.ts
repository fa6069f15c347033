// The entry point `pawl/prices`: the prices that the package @pydantic/genai-prices keeps.
import { pricesOf } from './kept-prices.ts';
import type { PricedCall } from './prices.ts';

/**
 * Prices for a budget, from the list that the package `@pydantic/genai-prices` brings along; update the package to update
 * the list. It knows the models of the large providers, their caches, and prices that change with the size of a request. A
 * model that it does not know has no price.
 *
 * @throws {UnsupportedError} when the package is not installed
 * @example createBudget({ usd: 5, prices: await genaiPrices() })
 */
export async function genaiPrices(): Promise<(call: PricedCall) => number | undefined> {
  return pricesOf(() => import('@pydantic/genai-prices'));
}
