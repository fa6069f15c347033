import { isAmount, isObject } from './json.ts';

/**
 * Tokens that a run spent, over all processes that worked on it, as providers reported them. An absent count is 0, even if a
 * budget counts an estimate (`spend`).
 */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

/** No usage: all counts are 0. */
export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
});

/** Adds the usage of two model calls. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  };
}

/**
 * Returns the usage of a model call with an estimate for the tokens that the provider did not report. Many compatible
 * servers report nothing, or zeros, unless they are asked: their report alone would never use up a budget.
 */
export function countedUse(
  reported: Usage,
  estimate: { readonly input: () => number; readonly output: () => number },
): Usage {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = reported;
  if (inputTokens > 0 && outputTokens > 0) return reported;
  return {
    ...reported,
    inputTokens: inputTokens || Math.max(estimate.input(), cacheReadTokens + cacheWriteTokens),
    outputTokens: outputTokens || Math.max(estimate.output(), reasoningTokens),
  };
}

/** The cost of a run, as its budget counts it. Tokens that a provider did not report are estimated. */
export interface Spend {
  readonly tokens: number;
  /** US dollars, by the prices of the budget. */
  readonly usd: number;
  /** Duration of the model calls. */
  readonly seconds: number;
}

/** No spend: all amounts are 0. */
export const noSpend: Spend = Object.freeze({ tokens: 0, usd: 0, seconds: 0 });

/** Adds two amounts of spend. */
export function addSpend(a: Spend, b: Spend): Spend {
  return { tokens: a.tokens + b.tokens, usd: addDecimals(a.usd, b.usd), seconds: addDecimals(a.seconds, b.seconds) };
}

/** Far less than any price of a token, and far more than the error of a sum. */
const DECIMALS = 1e12;

/** Adds two decimal numbers, to 12 digits after the point: 0.1 and 0.2 are 0.3, not 0.30000000000000004. */
export function addDecimals(a: number, b: number): number {
  const sum = a + b;
  // A number with so large a whole part has no such digits to lose.
  return sum < Number.MAX_SAFE_INTEGER / DECIMALS ? Math.round(sum * DECIMALS) / DECIMALS : sum;
}

const usageFields = Object.keys(noUsage);

/** Returns whether a stored value is a Usage. */
export function isUsage(value: unknown): boolean {
  return isObject(value) && usageFields.every((field) => isAmount(value[field]));
}

const spendFields = Object.keys(noSpend);

/** Returns whether a stored value is a Spend. */
export function isSpend(value: unknown): boolean {
  return isObject(value) && spendFields.every((field) => isAmount(value[field]));
}
