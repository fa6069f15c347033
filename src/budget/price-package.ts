import { readProperty } from '../values/error-data.ts';
import { UnsupportedError } from '../values/errors.ts';
import type { PricedCall } from './prices.ts';

/** The part of the package that is used. */
interface GenaiPrices {
  calcPrice(
    usage: { readonly [kind: string]: number },
    modelId: string,
    options: { readonly providerId: string },
  ): { readonly total_price: number } | null;
}

/**
 * Returns a function that looks up the price of a call in the optional price package, which `load` imports.
 * @throws {UNSUPPORTED} if it is not installed
 */
export async function pricesOf(load: () => Promise<GenaiPrices>): Promise<(call: PricedCall) => number | undefined> {
  const { calcPrice } = await load().catch((error: unknown) => {
    if (readProperty(error, 'code') !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UnsupportedError(
      'pawl/prices needs a package that is not installed: npm install @pydantic/genai-prices',
      {
        cause: error,
      },
    );
  });
  return ({ model, usage }) => {
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
    const counts = {
      // The package refuses a cache that is larger than the input; some providers report their input without the cache.
      input_tokens: Math.max(inputTokens, cacheReadTokens + cacheWriteTokens),
      output_tokens: outputTokens,
      cache_read_tokens: cacheReadTokens,
      cache_write_tokens: cacheWriteTokens,
    };
    const slash = model.indexOf('/');
    if (slash === -1) return undefined;
    const [provider, modelId] = [model.slice(0, slash), model.slice(slash + 1)];
    // The package knows some providers only by the first part of their name: `azure` of `azure.chat`.
    const names = [provider, provider.split('.', 1).join()];
    for (const providerId of names) {
      const price = calcPrice(counts, modelId, { providerId });
      if (price) return price.total_price;
    }
    return undefined;
  };
}
