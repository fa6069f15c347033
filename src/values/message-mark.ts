import { isAmount, isObject } from './json.ts';
import { type AssistantMessage, type Message, withOptions } from './message.ts';
import { MAX_MODEL_NAME_CHARS } from './model-use.ts';
import { noUsage, type Usage } from './usage.ts';

/*
 * Each answer of a model carries what made it, in `providerOptions.pawl`: so the mark travels with the message through records,
 * results and histories. No provider reads it: requests leave it out, and equal requests may have different marks.
 */

/** How a model made a message. */
export interface MessageMark {
  /** `provider/modelId`, as records name a model. */
  readonly model: string;
  /** Its tokens, those of failed attempts included; absent in a message that a host gave. */
  readonly usage?: Usage;
  /** From the first attempt to the whole answer, by the executor's clock; absent in a message that a host gave. */
  readonly ms?: number;
}

/** More is no count of one message. A bound keeps marks short. */
const MAX_COUNT = 999_999_999;

const counts = Object.keys(noUsage) as readonly (keyof Usage)[];

/** Returns the message with its mark. Beside the model's name, a mark takes at most 120 bytes of a record. */
export function marked(message: AssistantMessage, { model, usage = noUsage, ms = 0 }: MessageMark): AssistantMessage {
  const used = counts.map((name) => bounded(usage[name]));
  while (used.at(-1) === 0) used.pop();
  return withOptions(message, { pawl: { model, usage: used, ms: bounded(ms) } });
}

function bounded(count: number): number {
  return Math.min(MAX_COUNT, Math.max(0, Math.round(count) || 0));
}

/** Returns the mark of a message; undefined for one without. */
export function markOf({ role, providerOptions }: Message): MessageMark | undefined {
  const mark = role === 'assistant' ? providerOptions?.pawl : undefined;
  if (!isObject(mark) || typeof mark.model !== 'string') return undefined;
  const { model, usage, ms } = mark as { model: string; usage?: unknown; ms?: number };
  return {
    model: model.slice(0, MAX_MODEL_NAME_CHARS),
    ...(Array.isArray(usage) && usage.every(isAmount) ? { usage: usageOf(usage) } : {}),
    ...(isAmount(ms) ? { ms } : {}),
  };
}

function usageOf(list: readonly number[]): Usage {
  return Object.fromEntries(counts.map((name, i) => [name, list[i] ?? 0])) as unknown as Usage;
}

/** Returns the message without what Pawl wrote into it. A message without a mark stays the same object. */
export function unmarked<M extends Message>(message: M): M {
  if (!message.providerOptions || !('pawl' in message.providerOptions)) return message;
  const { providerOptions, ...rest } = message;
  const { pawl: _, ...others } = providerOptions;
  return (Object.keys(others).length > 0 ? { ...rest, providerOptions: others } : rest) as M;
}

/** Returns a message of a host: of its mark only the model's name is read, and no other message may have one. */
export function withHint<M extends Message>(message: M): M {
  const plain = unmarked(message);
  const mark = plain === message ? undefined : markOf(message);
  if (!mark) return plain;
  return { ...plain, providerOptions: { ...plain.providerOptions, pawl: { model: mark.model.toWellFormed() } } };
}
