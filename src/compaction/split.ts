import { hasToolCalls, type Message } from '../values/message.ts';

/** A history in three parts; joined, they are the whole history. */
export interface SplitHistory {
  readonly first: readonly Message[];
  /** The part that a summary can replace. */
  readonly middle: readonly Message[];
  readonly last: readonly Message[];
}

/**
 * Splits a history into its beginning, the middle to summarize, and its end. A cut never separates a call from its results:
 * the ends keep more messages instead.
 *
 * @param keep messages to keep at both ends: `keepFirst` at least 1, the opening; `keepLast` may be 0
 * @example
 * const { first, middle, last } = splitForCompaction(messages, { keepFirst: 1, keepLast: 8 });
 */
export function splitForCompaction(
  messages: readonly Message[],
  keep: { readonly keepFirst: number; readonly keepLast: number },
): SplitHistory {
  const begin = cutAfter(messages, Math.max(1, keep.keepFirst));
  const end = Math.max(begin, cutBefore(messages, messages.length - keep.keepLast));
  return { first: messages.slice(0, begin), middle: messages.slice(begin, end), last: messages.slice(end) };
}

function cutAfter(messages: readonly Message[], from: number): number {
  let cut = Math.min(from, messages.length);
  while (cut < messages.length && isWithinStep(messages, cut)) cut++;
  return cut;
}

function cutBefore(messages: readonly Message[], from: number): number {
  let cut = Math.min(Math.max(0, from), messages.length);
  while (cut > 0 && isWithinStep(messages, cut)) cut--;
  return cut;
}

/** Whether a cut before this message would separate a call from its result. */
function isWithinStep(messages: readonly Message[], index: number): boolean {
  const [before, after] = [messages[index - 1], messages[index]];
  return after?.role === 'tool' || (before !== undefined && hasToolCalls(before));
}
