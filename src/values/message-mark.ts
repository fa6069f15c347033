import type { JSONObject } from '@ai-sdk/provider';
import { isAmount, isCount, isObject } from './json.ts';
import { type AssistantMessage, enterFrozen, isMessage, type Message } from './message.ts';
import { MAX_MODEL_NAME_CHARS } from './model-use.ts';
import { noUsage, type Usage } from './usage.ts';

/*
 * Each answer of a model carries what made it, in `providerOptions.pawl`: so the mark travels with the message through records,
 * results and histories. No provider reads it: requests leave it out, and equal requests may have different marks.
 */

/** What a model got in the place of the first messages of its transcript, from this answer on. */
export interface RecordedCompaction {
  /** How many messages it replaces. */
  readonly upTo: number;
  /** Its messages: places of the transcript, from the first to before the second, and what the compactor wrote. */
  readonly parts: readonly (readonly [number, number] | Message)[];
}

/** How a model made a message. */
export interface MessageMark {
  /** `provider/modelId`, as records name a model. */
  readonly model: string;
  /** The account, where a list of models names one. */
  readonly key?: string;
  /** Its tokens, those of failed attempts included; absent in a message that a host gave. */
  readonly usage?: Usage;
  /** From the first attempt to the whole answer, by the executor's clock; absent in a message that a host gave. */
  readonly ms?: number;
  /** The effect of each call that the run had to make, a letter each: `r`ead, `i`dempotent, `o`nce; absent = all of them only read. */
  readonly effects?: string | undefined;
  /** Of the first answer after a compaction. */
  readonly compacted?: RecordedCompaction | undefined;
}

/** More is no count of one message. A bound keeps marks short. */
const MAX_COUNT = 999_999_999;

/**
 * Takes in a deep-frozen answer with its mark. Beside the model's name, a mark takes at most 120 bytes of a record, and a byte for
 * each call of an answer whose calls do more than read. A compaction comes besides, once.
 */
export function enterAnswer(
  message: AssistantMessage,
  { model, key, usage = noUsage, ms = 0, effects, compacted }: MessageMark,
): AssistantMessage {
  const mark: JSONObject = { model };
  if (key !== undefined) mark.key = key;
  mark.usage = countsOf(usage);
  mark.ms = bounded(ms);
  if (effects !== undefined) mark.effects = effects;
  if (compacted) mark.compacted = compacted as unknown as JSONObject;
  Object.freeze(mark);
  return enterFrozen({ ...message, providerOptions: Object.freeze({ ...message.providerOptions, pawl: mark }) });
}

/** Tokens as a mark has them: a list, without the zeros at its end. */
function countsOf(usage: Usage): number[] {
  const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const counts = [inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens].map(bounded);
  while (counts.at(-1) === 0) counts.pop();
  return Object.freeze(counts) as number[];
}

function usageOf(counts: readonly number[]): Usage {
  const [inputTokens = 0, outputTokens = 0, reasoningTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0] = counts;
  return { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens };
}

function bounded(count: number): number {
  return Math.min(MAX_COUNT, Math.max(0, Math.round(count) || 0));
}

/** Returns the model that made a message, as its mark names it; undefined for one without a mark. */
export function makerOf({ role, providerOptions }: Message): string | undefined {
  const mark = role === 'assistant' ? readMark(providerOptions?.pawl) : undefined;
  return mark && modelOf(mark);
}

/** Returns the account of the model that made a message, as a list of models names it; undefined for one without. */
export function keyOf({ providerOptions }: Message): string | undefined {
  const key = readMark(providerOptions?.pawl)?.key;
  return typeof key === 'string' ? key : undefined;
}

type ReadMark = { readonly model: string } & {
  readonly [Key in 'key' | 'usage' | 'ms' | 'effects' | 'compacted']?: unknown;
};

function readMark(mark: unknown): ReadMark | undefined {
  return isObject(mark) && typeof mark.model === 'string' ? (mark as { model: string }) : undefined;
}

function modelOf({ model }: ReadMark): string {
  return model.length > MAX_MODEL_NAME_CHARS ? model.slice(0, MAX_MODEL_NAME_CHARS) : model;
}

/** Returns the mark of a message; undefined for one without. */
export function markOf({ role, providerOptions }: Message): MessageMark | undefined {
  const mark = role === 'assistant' ? readMark(providerOptions?.pawl) : undefined;
  if (!mark) return undefined;
  const { key, usage, ms, effects, compacted } = mark;
  const read: { -readonly [Name in keyof MessageMark]: MessageMark[Name] } = { model: modelOf(mark) };
  if (typeof key === 'string') read.key = key;
  if (Array.isArray(usage) && usage.every(isAmount)) read.usage = usageOf(usage);
  if (isAmount(ms)) read.ms = ms as number;
  if (typeof effects === 'string') read.effects = effects;
  if (isCompaction(compacted)) read.compacted = compacted;
  return read;
}

function isCompaction(value: unknown): value is RecordedCompaction {
  if (!isObject(value) || !isCount(value.upTo) || !Array.isArray(value.parts)) return false;
  const isRange = (part: readonly unknown[]) =>
    part.length === 2 && part.every(isCount) && (part[0] as number) < (part[1] as number);
  return value.parts.every((part) => (Array.isArray(part) ? isRange(part) : isMessage(part)));
}

/** Returns the message with what a function makes of the texts of its compaction; the same object where nothing changes. */
export function withCompacted<M extends Message>(message: M, change: (message: Message) => Message): M {
  const { compacted } = message.role === 'assistant' ? (markOf(message) ?? {}) : {};
  if (!compacted) return message;
  const parts = compacted.parts.map((part) => ('role' in part ? change(part) : part));
  if (parts.every((part, i) => part === compacted.parts[i])) return message;
  const pawl = { ...message.providerOptions?.pawl, compacted: { ...compacted, parts } };
  return { ...message, providerOptions: { ...message.providerOptions, pawl } } as unknown as M;
}

/** Returns the message without what Pawl wrote into it. A message without a mark stays the same object. */
export function unmarked<M extends Message>(message: M): M {
  const options = unmarkedOptions(message);
  if (options === message.providerOptions) return message;
  const { providerOptions: _, ...rest } = message;
  return (options ? { ...rest, providerOptions: options } : rest) as M;
}

/** Returns the provider options of a message without its mark; undefined if there are no others. */
export function unmarkedOptions({ providerOptions }: Message): Message['providerOptions'] {
  if (!providerOptions || !('pawl' in providerOptions)) return providerOptions;
  // Nearly all marked messages: a copy of nothing would cost each step more than the rest of the mark.
  if (Object.keys(providerOptions).length === 1) return undefined;
  const { pawl: _, ...others } = providerOptions;
  return others;
}

/** Returns a message of a host: of its mark only the model's name is read, and no other message may have one. */
export function withHint<M extends Message>(message: M): M {
  const plain = unmarked(message);
  const mark = plain === message ? undefined : markOf(message);
  if (!mark) return plain;
  return { ...plain, providerOptions: { ...plain.providerOptions, pawl: { model: mark.model.toWellFormed() } } };
}
