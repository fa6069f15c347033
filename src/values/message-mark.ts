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

const counts = Object.keys(noUsage) as readonly (keyof Usage)[];

/**
 * Takes in a deep-frozen answer with its mark. Beside the model's name, a mark takes at most 120 bytes of a record, and a byte for
 * each call of an answer whose calls do more than read. A compaction comes besides, once.
 */
export function enterAnswer(
  message: AssistantMessage,
  { model, key, usage = noUsage, ms = 0, effects, compacted }: MessageMark,
): AssistantMessage {
  const used = counts.map((name) => bounded(usage[name]));
  while (used.at(-1) === 0) used.pop();
  const made = {
    model,
    ...(key === undefined ? {} : { key }),
    usage: Object.freeze(used) as number[],
    ms: bounded(ms),
  };
  const isPlain = effects === undefined && !compacted;
  const mark = Object.freeze(
    isPlain ? made : { ...made, ...(effects === undefined ? {} : { effects }), ...(compacted ? { compacted } : {}) },
  );
  return enterFrozen({ ...message, providerOptions: Object.freeze({ ...message.providerOptions, pawl: mark }) });
}

function bounded(count: number): number {
  return Math.min(MAX_COUNT, Math.max(0, Math.round(count) || 0));
}

/** Returns the model that made a message, as its mark names it; undefined for one without a mark. */
export function makerOf({ role, providerOptions }: Message): string | undefined {
  const model = role === 'assistant' ? readMark(providerOptions?.pawl)?.model : undefined;
  return model?.slice(0, MAX_MODEL_NAME_CHARS);
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

/** Returns the mark of a message; undefined for one without. */
export function markOf(message: Message): MessageMark | undefined {
  const model = makerOf(message);
  if (model === undefined) return undefined;
  const { usage, ms, effects, compacted } = readMark(message.providerOptions?.pawl) ?? {};
  const key = keyOf(message);
  return {
    model,
    ...(key === undefined ? {} : { key }),
    ...(Array.isArray(usage) && usage.every(isAmount) ? { usage: usageOf(usage) } : {}),
    ...(isAmount(ms) ? { ms: ms as number } : {}),
    ...(typeof effects === 'string' ? { effects } : {}),
    ...(isCompaction(compacted) ? { compacted } : {}),
  };
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

function usageOf(list: readonly number[]): Usage {
  return Object.fromEntries(counts.map((name, i) => [name, list[i] ?? 0])) as unknown as Usage;
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
