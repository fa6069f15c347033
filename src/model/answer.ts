import type { ModelReply } from '../run/reply.ts';
import { readProperty } from '../values/error-data.ts';
import { ContentRefusedError, ModelError } from '../values/errors.ts';
import { hasToolCalls, type Message, textOf } from '../values/message.ts';
import { printable } from '../values/texts/model-text.ts';

/** The finish reasons of a turn that a provider garbled, though its stream ended in order. */
const garbled: ReadonlySet<unknown> = new Set(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL']);

/** An answer that reached its length limit before its first word is asked for once more: the next one is often as long. */
const CUT_REQUESTS = 2;

/** What a reply must have to be one: text, as where calls are not run, or one of both. */
export type Needed = 'text' | 'text-or-calls';

/** The end of a model's stream, as its provider and its package name it. */
interface StreamEnd {
  /** The AI SDK's word. */
  readonly unified: string;
  /** The provider's own word. */
  readonly raw: unknown;
  readonly needs: Needed | undefined;
}

/**
 * Returns the error of a whole reply that is no answer. It is asked again within the attempts of one process; a longer wait
 * would not help.
 * @param requests the most requests in which to ask for it; absent = all attempts
 */
export function noAnswer(message: string, requests = Number.MAX_SAFE_INTEGER): ModelError {
  return Object.assign(new ModelError(message), { requests });
}

/** Returns the error of a reply that reached its length limit before it was an answer. */
export function cutAnswer(message: string): ModelError {
  return Object.assign(noAnswer(message, CUT_REQUESTS), { finishReason: 'length' });
}

/** Returns in how many requests an answer is asked for that came without content; undefined: this is not such an error. */
export function requestsOf(error: unknown): number | undefined {
  const requests = readProperty(error, 'code') === 'MODEL' ? readProperty(error, 'requests') : undefined;
  return typeof requests === 'number' ? requests : undefined;
}

/**
 * Returns how a whole reply ended, and whether the provider paused it.
 * @param end `needs` absent: any content will do, and none
 * @throws {MODEL} `noAnswer` for a reply without what it needs, and for a garbled one
 * @throws {CONTENT_REFUSED} when the provider withheld the whole answer
 */
export function endOfAnswer(message: Message, end: StreamEnd): Pick<ModelReply, 'finishReason' | 'isPaused'> {
  const { unified, raw, needs } = end;
  const finishReason = unified === 'content-filter' && raw === 'refusal' ? 'refusal' : unified;
  const said = () =>
    `"${finishReason}"${typeof raw === 'string' && raw !== finishReason ? ` (${printable(raw)})` : ''}`;
  if (unified === 'error') throw noAnswer(`the model's reply ended with finish reason ${said()}`);
  if (needs === undefined || (needs !== 'text' && hasToolCalls(message))) return { finishReason };
  if (raw === 'pause_turn') return { finishReason, isPaused: true };
  if (garbled.has(raw)) throw noAnswer(`the model's reply ended with finish reason ${said()}`);
  if (hasContent(message)) return { finishReason };
  if (finishReason === 'content-filter' || finishReason === 'refusal') {
    throw Object.assign(new ContentRefusedError(`the provider refused to answer: finish reason ${said()}`), {
      finishReason,
    });
  }
  if (finishReason === 'length') {
    throw cutAnswer('the model reached its length limit before it wrote any text');
  }
  throw noAnswer(`the model's reply has neither text nor calls; its finish reason is ${said()}`);
}

/** Text that is more than white space, or a file: thoughts alone are no answer. */
function hasContent(message: Message): boolean {
  return /\S/.test(textOf(message)) || (Array.isArray(message.content) && message.content.some(isFile));
}

function isFile(part: unknown): boolean {
  return readProperty(part, 'type') === 'file';
}

/** Returns whether a reply is an answer that reached its length limit. */
export function isCutAnswer({ finishReason, message }: ModelReply): boolean {
  return finishReason === 'length' && !hasToolCalls(message);
}
