import { TranscriptInvalidError } from '../../values/errors.ts';
import { isObject } from '../../values/json.ts';
import { enterMessage, type Message, toolCallsOf, toolResultsOf } from '../../values/message.ts';

/**
 * A compactor's answer as messages that can be sent: they begin with a user message, end with one or with results, and
 * each call has its results right after it, in order.
 *
 * @param most how many messages there were before
 * @throws {TranscriptInvalidError | NotJsonError} when it is no such history
 */
export function compactedHistory(answer: unknown, most: number): readonly Message[] {
  if (!Array.isArray(answer)) throw invalid(`is no list of messages but ${answer === null ? 'null' : typeof answer}`);
  const { length } = answer;
  if (length > most) throw invalid(`has ${length} messages, and there were ${most}`);
  const messages: Message[] = [];
  for (let i = 0; i < length; i++) messages.push(checkedMessage(answer[i], i));
  checkOrder(messages);
  return messages;
}

function checkedMessage(value: unknown, index: number): Message {
  const message = enterMessage(value, `compacted[${index}]`);
  const { role, content } = (isObject(message) ? message : {}) as Partial<Message>;
  const isText = role === 'system' && typeof content === 'string';
  const isParts = Array.isArray(content) && ['user', 'assistant', 'tool'].includes(String(role));
  if (isText || (isParts && content.every(isPart))) return message;
  throw invalid(`has a ${String(role)} message at ${index} that no model can be sent`);
}

/** Only what would break a provider: parts of unknown types are the provider's business. */
function isPart(part: unknown): boolean {
  if (!isObject(part) || typeof part.type !== 'string') return false;
  if (part.type === 'text' || part.type === 'reasoning') return typeof part.text === 'string';
  if (part.type !== 'tool-call' && part.type !== 'tool-result') return true;
  const isNamed = typeof part.toolCallId === 'string' && typeof part.toolName === 'string';
  return isNamed && (part.type === 'tool-call' || (isObject(part.output) && typeof part.output.type === 'string'));
}

function checkOrder(messages: readonly Message[]): void {
  if (messages[0]?.role !== 'user') throw invalid('does not begin with a user message');
  let open: string[] = [];
  for (const [i, message] of messages.entries()) {
    if (message.role !== 'tool' && open.length > 0) throw invalid(`has a call before ${i} without its result`);
    for (const { toolCallId } of toolResultsOf(message)) {
      if (open.shift() !== toolCallId) throw invalid(`has a result at ${i} that answers no call, or not in order`);
    }
    open = [...open, ...toolCallsOf(message).map(({ toolCallId }) => toolCallId)];
  }
  if (open.length > 0 || messages.at(-1)?.role === 'assistant') throw invalid('ends in the middle of a turn');
}

function invalid(problem: string): TranscriptInvalidError {
  return new TranscriptInvalidError(`the compacted history ${problem}`);
}
