import { toErrorData } from '../values/error-data.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import type { Usage } from '../values/usage.ts';

/** The price of a model, in US dollars per million tokens. */
export interface ModelPrice {
  readonly inputPerMillion: number;
  /** Reasoning tokens are part of the output tokens, as providers count them. */
  readonly outputPerMillion: number;
  /** Input that the provider read from its cache; default: the price of other input. */
  readonly cachedInputPerMillion?: number;
  /** Input that the provider wrote to its cache; default: the price of other input. */
  readonly cacheWritePerMillion?: number;
}

/** A call that needs a price. */
export interface PricedCall {
  /** `provider/modelId`, for example `openai.chat/gpt-5`. */
  readonly model: string;
  readonly modelTier: string;
  readonly usage: Usage;
}

/**
 * A table by `provider/modelId`, or a function that returns the price of a call in US dollars (`undefined` = not known).
 * A provider whose name contains its API (`openai.chat/gpt-5`) is also found as `openai/gpt-5`.
 * @example { 'openai/gpt-5': { inputPerMillion: 1.25, outputPerMillion: 10, cachedInputPerMillion: 0.125 } }
 */
export type Prices = { readonly [model: string]: ModelPrice } | ((call: PricedCall) => number | undefined);

/** Returns a call's price in US dollars, or undefined if it is not known. @throws {TypeError} if the price is invalid */
export type PriceOf = (call: PricedCall) => number | undefined;

/**
 * Makes the function that computes the price of a model call, from a table of prices or a host's function.
 * @throws {TypeError} if a price in the table is invalid
 */
export function priceOfCalls(prices: Prices | undefined): PriceOf {
  if (prices === undefined) return () => undefined;
  if (typeof prices === 'function') return (call) => asked(prices, call);
  if (!isObject(prices)) throw new TypeError('prices must be a table by provider/modelId, or a function');
  const table = new Map(Object.entries(prices).map(([model, price]) => [model, checked(model, price)]));
  return ({ model, usage }) => {
    const price = table.get(model) ?? table.get(withoutApi(model));
    return price && costOf(usage, price);
  };
}

/** Removes the name of the API from a model's name: `openai.chat/gpt-5` becomes `openai/gpt-5`. */
function withoutApi(model: string): string {
  return model.replace(/^([^./]+)\.[^/]*/, '$1');
}

function costOf(usage: Usage, price: ModelPrice): number {
  const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion, outputPerMillion } = price;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const plain = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const millionths =
    plain * inputPerMillion +
    cacheReadTokens * (cachedInputPerMillion ?? inputPerMillion) +
    cacheWriteTokens * (cacheWritePerMillion ?? inputPerMillion) +
    outputTokens * outputPerMillion;
  return millionths / 1e6;
}

function asked(prices: (call: PricedCall) => number | undefined, call: PricedCall): number | undefined {
  const usd: unknown = prices(call);
  if (usd === undefined || usd === null) return undefined;
  letGo(usd);
  if (typeof usd === 'number' && usd >= 0 && Number.isFinite(usd)) return usd;
  const given = typeof usd === 'number' ? String(usd) : typeof usd;
  throw new TypeError(`prices returned ${given} for ${call.model}; it must return US dollars or undefined`);
}

const priceKeys: KnownKeys<ModelPrice> = {
  inputPerMillion: true,
  outputPerMillion: true,
  cachedInputPerMillion: true,
  cacheWritePerMillion: true,
};

const fields = ['inputPerMillion', 'outputPerMillion', 'cachedInputPerMillion', 'cacheWritePerMillion'] as const;

function checked(model: string, price: unknown): ModelPrice {
  if (!isObject(price)) throw new TypeError(`prices[${JSON.stringify(model)}] must be an object`);
  checkKeys(price, priceKeys, { of: `prices[${JSON.stringify(model)}]` });
  for (const field of fields) {
    const amount = price[field];
    const isMissing = amount === undefined && field.startsWith('cache');
    if (isMissing || (typeof amount === 'number' && amount >= 0 && Number.isFinite(amount))) continue;
    throw new TypeError(`prices[${JSON.stringify(model)}].${field} must be US dollars, 0 or more`);
  }
  return { ...price } as unknown as ModelPrice;
}

/** Returns the message of an error that a host's `prices` function threw. */
export function reasonOf(error: unknown): string {
  return toErrorData(error).message;
}
