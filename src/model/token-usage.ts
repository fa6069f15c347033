import { readProperty } from '../values/error-data.ts';
import type { Usage } from '../values/usage.ts';

/** The usage a model reported as a run counts it. What is absent, negative or not a number counts as 0. */
export function tokenUsage(reported: unknown): Usage {
  const input = readProperty(reported, 'inputTokens');
  const output = readProperty(reported, 'outputTokens');
  return {
    inputTokens: count(input, 'total'),
    outputTokens: count(output, 'total'),
    reasoningTokens: count(output, 'reasoning'),
    cacheReadTokens: count(input, 'cacheRead'),
    cacheWriteTokens: count(input, 'cacheWrite'),
  };
}

function count(tokens: unknown, key: string): number {
  const value = readProperty(tokens, key);
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0;
}
