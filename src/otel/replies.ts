import type { Attributes } from '@opentelemetry/api';
import { genAi, nameOfSpan } from './names.ts';

/** The parts of a model's reply that spans and metrics read. */
interface Reply {
  readonly finishReason?: unknown;
  readonly usage?: { readonly [name: string]: unknown };
}

/** The counts of a reply, and their attributes. */
const counts = [
  ['inputTokens', genAi.inputTokens],
  ['outputTokens', genAi.outputTokens],
  ['cacheReadTokens', genAi.cacheReadTokens],
  ['cacheWriteTokens', genAi.cacheWriteTokens],
  ['reasoningTokens', genAi.reasoningTokens],
] as const;

/** Returns the tokens of a reply by the names of their attributes. Counts of 0 are left out, but for input and output. */
export function tokensOf(reply: unknown): readonly (readonly [name: string, tokens: number])[] {
  const { usage } = asReply(reply);
  return counts.flatMap(([key, name]) => {
    const tokens = usage?.[key];
    const isWanted = key === 'inputTokens' || key === 'outputTokens' || tokens !== 0;
    return typeof tokens === 'number' && isWanted ? [[name, tokens] as const] : [];
  });
}

/** Returns what the span of a model request says of its reply. */
export function replyAttributes(reply: unknown): Attributes {
  const { finishReason } = asReply(reply);
  return {
    ...Object.fromEntries(tokensOf(reply)),
    ...(typeof finishReason === 'string' ? { [genAi.finishReasons]: [nameOfSpan(finishReason)] } : {}),
  };
}

function asReply(reply: unknown): Reply {
  return typeof reply === 'object' && reply !== null ? (reply as Reply) : {};
}

/** Returns the code of an error, for `error.type`. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '_OTHER';
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === 'string') return nameOfSpan(code);
  return typeof name === 'string' ? nameOfSpan(name) : '_OTHER';
}

/** How many values of one attribute the metrics tell apart. */
const MAX_VALUES = 200;

/** Bounds the values of the attributes of metrics: each further one is `other`. */
export class BoundedValues {
  readonly #seen = new Map<string, Set<string>>();

  /** Returns a value as a metric may have it. */
  of(attribute: string, value: string): string {
    const name = nameOfSpan(value);
    const seen = this.#seen.get(attribute) ?? new Set();
    this.#seen.set(attribute, seen);
    if (!seen.has(name) && seen.size >= MAX_VALUES) return 'other';
    seen.add(name);
    return name;
  }
}
