import { type OpenStep, resultsMessage, stepOf } from '../../../run/open-step.ts';
import { hasToolCalls, type Message, type ToolOutput } from '../../../values/message.ts';

/** A longer result is likely what a provider refused. */
const LARGE_CHARS = 10_000;

const LEFT_OUT = '(left out: the provider refused this content)';
const leftOut: ToolOutput = { type: 'text', value: LEFT_OUT };

type UserPart = Extract<Message, { role: 'user' }>['content'][number];

/**
 * Returns what later requests have of a turn whose last request was refused for its content: nothing, unless it made calls. Then
 * the model has to know of them: they stay with their results. What came after the last answer was in no request that was taken:
 * of it the files and the large results are replaced by a sentence; all of it, if there are none.
 */
export function withoutRefused(own: readonly Message[]): readonly Message[] {
  if (!own.some(hasToolCalls)) return [];
  const taken = own.findLastIndex(({ role }) => role === 'assistant') + 1;
  const tail = own.slice(taken);
  const isSuspect = tail.some((message) => replaced(message, isLarge) !== message);
  return [...own.slice(0, taken), ...tail.map((message) => replaced(message, isSuspect ? isLarge : () => true))];
}

const NOT_RUN = 'This call did not run: its turn was set aside.';
const NOT_ENDED = 'This call waited, and had not ended when its turn was set aside.';
const UNKNOWN =
  'Outcome unknown: this call had not ended when its turn was set aside. It may or may not have taken effect.';

/**
 * Returns what later requests have of a turn that its conversation left parked: nothing, unless it made calls. Then it stays, and
 * each call of its open step has a result: its own, or a sentence that says whether it may have taken effect.
 */
export function withoutParked(own: readonly Message[], openStep: OpenStep | undefined): readonly Message[] {
  if (!openStep) return own.some(hasToolCalls) ? own : [];
  const calls = openStep.calls.map((call) => {
    if (call.state === 'done') return call;
    const value = call.attempt > 0 ? UNKNOWN : call.state === 'waiting' ? NOT_ENDED : NOT_RUN;
    return { ...call, state: 'done' as const, result: { type: 'error-text' as const, value } };
  });
  return [...own, openStep.message, resultsMessage(stepOf(openStep.message, calls))];
}

function isLarge(content: UserPart | ToolOutput): boolean {
  if (content.type === 'file') return true;
  if (content.type === 'content' && content.value.some(({ type }) => type !== 'text')) return true;
  return JSON.stringify(content).length > LARGE_CHARS;
}

/** The same object if nothing is replaced. */
function replaced(message: Message, isRefused: (content: UserPart | ToolOutput) => boolean): Message {
  if (message.role === 'tool') {
    const content = message.content.map((part) =>
      part.type === 'tool-result' && isRefused(part.output) ? { ...part, output: leftOut } : part,
    );
    return content.every((part, i) => part === message.content[i]) ? message : { ...message, content };
  }
  if (message.role !== 'user') return message;
  const content = message.content.map((part) => (isRefused(part) ? { type: 'text' as const, text: LEFT_OUT } : part));
  return content.every((part, i) => part === message.content[i]) ? message : { ...message, content };
}
