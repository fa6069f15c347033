import type { ModelReply, RefusedCall } from '../run/reply.ts';
import { readProperty } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';
import { frozenJson, isObject, MESSAGE_DEPTH } from '../values/json.ts';
import type { AssistantMessage } from '../values/message.ts';
import { partsProblem } from '../values/message-shape.ts';
import { MAX_MODEL_NAME_CHARS } from '../values/model-use.ts';
import { printable } from '../values/texts/model-text.ts';
import { isToolName, recordedName } from '../values/tool-name.ts';
import { noUsage, type Usage } from '../values/usage.ts';
import { endOfAnswer, type Needed } from './answer.ts';
import { judged } from './failure.ts';
import { type ReplyLimits, ReplySize } from './reply-limits.ts';

interface GivenReply {
  readonly message: Record<string, unknown>;
  readonly refused?: unknown;
}

/**
 * Checks a reply that host code made or changed, by the rules for a provider's reply, and returns a frozen copy. The copy
 * leaves out what a budget counted. An absent `usage` counts as zero, an absent `finishReason` is `stop`.
 * @throws {MODEL} for a value that is not a reply, and for a reply that is no answer, {REPLY_TOO_LARGE} above the limits, {NOT_JSON} with the path
 */
export function checkedReply(given: unknown, limits: ReplyLimits, needs?: Needed): ModelReply {
  if (!isObject(given) || !isObject(given.message)) throw wrong('is not an object with a message');
  const { finishReason = 'stop', usage, refused: known } = given;
  if (typeof finishReason !== 'string') throw wrong('has a finishReason that is not a string');
  // The copy is checked: a getter may return another value at each read.
  const message = frozenJson(given.message, 'reply.message', MESSAGE_DEPTH) as Record<string, unknown>;
  const refused = refusedCalls({ message, refused: known }, limits);
  const problem = partsProblem(message);
  if (problem !== undefined) throw wrong(`has a message that no run can record${problem}`);
  const answer = message as unknown as AssistantMessage;
  const raw = readProperty(given, 'finishReason');
  const model = typeof given.model === 'string' ? given.model.slice(0, MAX_MODEL_NAME_CHARS).toWellFormed() : '';
  return Object.freeze({
    message: answer,
    ...endOfAnswer(answer, { unified: finishReason, raw, needs }),
    usage: checkedUsage(usage),
    ...(model === '' ? {} : { model }),
    ...(refused.length > 0 ? { refused } : {}),
  });
}

/** A bug of the middleware, which another call would meet again: no call of a model is paid for it twice. */
function wrong(what: string): ModelError {
  return judged(new ModelError(`the reply that a middleware returned ${what}`), { kind: 'final', isBug: true });
}

/** The calls that must not run: those that the reply lists, and those whose arguments are too large. */
function refusedCalls({ message, refused: known }: GivenReply, limits: ReplyLimits): RefusedCall[] {
  if (message.role !== 'assistant') throw wrong('has a message whose role is not assistant');
  if (!Array.isArray(message.content)) throw wrong('has a message whose content is not a list of parts');
  const size = new ReplySize(limits);
  const reasons = reasonsIn(known);
  let position = 0;
  for (const part of message.content) {
    if (!isObject(part) || typeof part.type !== 'string') throw wrong('has a part without a type');
    if ((part.type === 'text' || part.type === 'reasoning') && typeof part.text !== 'string') {
      throw wrong(`has a ${part.type} part whose text is not a string`);
    }
    size.chars(size.sizeOf(part));
    if (part.type !== 'tool-call') size.part(undefined);
    else {
      size.call(part.toolCallId, checkedName(part, reasons.has(position)));
      if (part.providerExecuted === true) continue;
      const why = size.refusalOf(part.input, 0);
      if (why !== undefined) reasons.set(position, why);
      position += 1;
    }
  }
  return [...reasons].filter(([at]) => at < position).map(([at, why]) => ({ position: at, why }));
}

function reasonsIn(known: unknown): Map<number, string> {
  if (known === undefined) return new Map();
  const isRefused = (each: unknown) =>
    isObject(each) && Number.isSafeInteger(each.position) && typeof each.why === 'string';
  if (!Array.isArray(known) || !known.every(isRefused)) throw wrong('has a field `refused` that is not a list');
  return new Map((known as RefusedCall[]).map(({ position, why }) => [position, why]));
}

/** A refused call may have the name that a model made up. */
function checkedName({ toolCallId, toolName }: Record<string, unknown>, isRefused: boolean): string {
  if (typeof toolCallId !== 'string') throw wrong('has a tool call whose toolCallId is not a string');
  const isKept = isToolName(toolName) || (isRefused && recordedName(toolName) === toolName);
  if (typeof toolName === 'string' && isKept) return toolName;
  throw wrong(`calls "${printable(toolName)}", which is not a tool name`);
}

function checkedUsage(given: unknown): Usage {
  if (given === undefined) return noUsage;
  const counts = Object.keys(noUsage).map((name) => {
    const count = isObject(given) ? (given[name] ?? 0) : undefined;
    if (typeof count === 'number' && Number.isFinite(count) && count >= 0) return [name, count] as const;
    throw wrong(`has a usage whose ${name} is not a number of 0 or more`);
  });
  return Object.freeze(Object.fromEntries(counts)) as unknown as Usage;
}
