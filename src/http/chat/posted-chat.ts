import type { MessagePart } from '../../index.ts';
import { isObject, type JsonValue } from '../../values/json.ts';
import { RequestError } from '../problem.ts';

/** A message of the user at the end of the conversation, as the page posted it. */
export interface PostedMessage {
  readonly id: string;
  readonly parts: readonly MessagePart[];
}

/** A person's answer in a message of the assistant. It names the wait that the page showed. */
export type PostedAnswer = { readonly waitId: string; readonly callId: string } & (
  | { readonly how: 'approve'; readonly note?: string; readonly digest?: string }
  | { readonly how: 'deny'; readonly reason?: string }
  | { readonly how: 'answer'; readonly value: JsonValue }
);

/** What is read of a body of `useChat`: all else in it, a page could have made up. */
export interface PostedChat {
  readonly threadId: string;
  readonly isRegenerate: boolean;
  /** The message that is edited, answered or made again. */
  readonly messageId?: string;
  /** The messages of the user after the last one of the assistant, oldest first. */
  readonly tail: readonly PostedMessage[];
  readonly answers: readonly PostedAnswer[];
  /** The message of the assistant that the page continues, and its calls, the last one first. */
  readonly continued?: { readonly id: string; readonly callIds: readonly string[]; readonly steps: number };
}

const MAX_CHAT_ID_CHARS = 512;
const MAX_ANSWER_NOTE_CHARS = 4_000;
/** Most answers of one request, and most messages of the user in one turn. */
const MAX_POSTED_ANSWERS = 1_000;
const MAX_TURN_MESSAGES = 100;

/**
 * Reads the body of `useChat`: `{ id, messages | message, trigger?, messageId? }`. What a page says about the past is not read.
 * @throws {RequestError} BAD_REQUEST
 */
export function postedChat(body: unknown): PostedChat {
  if (!isObject(body)) throw refused('the body must be an object');
  const { id, messageId, trigger = 'submit-message' } = body;
  if (trigger !== 'submit-message' && trigger !== 'regenerate-message')
    throw refused('trigger must be submit-message or regenerate-message');
  const messages = messagesOf(body);
  const given = messageId === undefined || messageId === null ? undefined : idOf(messageId, 'messageId');
  const last = messages.findLastIndex((message) => isObject(message) && message.role !== 'user');
  const tail = messages.slice(last + 1);
  if (tail.length > MAX_TURN_MESSAGES) throw refused(`more than ${MAX_TURN_MESSAGES} messages in one turn`);
  const continued = continuedIn(messages, given);
  return {
    threadId: idOf(id, 'id'),
    isRegenerate: trigger === 'regenerate-message',
    ...(given === undefined ? {} : { messageId: given }),
    tail: tail.map(postedMessage),
    answers: messages.flatMap(answersIn).slice(-MAX_POSTED_ANSWERS),
    ...(continued ? { continued } : {}),
  };
}

function refused(detail: string): RequestError {
  return new RequestError('BAD_REQUEST', detail);
}

function idOf(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '' && value.length <= MAX_CHAT_ID_CHARS && value.isWellFormed())
    return value;
  throw refused(`${name} must be a string of 1 to ${MAX_CHAT_ID_CHARS} characters`);
}

function messagesOf({ messages, message }: Record<string, unknown>): readonly unknown[] {
  if (Array.isArray(messages)) return messages;
  if (messages === undefined && isObject(message)) return [message];
  throw refused('the body needs messages, a list, or message, an object');
}

function postedMessage(message: unknown): PostedMessage {
  if (!isObject(message)) throw refused('a message must be an object');
  const id = idOf(message.id, 'the id of a message');
  const parts = partsOf(message).flatMap(userPart);
  if (parts.every(isBlank)) throw refused('a message of the user needs a text or a file');
  return { id, parts };
}

function isBlank(part: MessagePart): boolean {
  return part.type === 'text' && part.text.trim() === '';
}

function partsOf(message: unknown): readonly Record<string, unknown>[] {
  const parts = isObject(message) ? message.parts : undefined;
  return Array.isArray(parts) ? parts.filter(isObject) : [];
}

/** Other parts, such as data of the page, are not for the model. */
function userPart(part: Record<string, unknown>): MessagePart[] {
  const { type, text, mediaType, url, filename } = part;
  if (type === 'text') return typeof text === 'string' && text !== '' ? [{ type, text }] : [];
  if (type !== 'file') return [];
  if (typeof mediaType !== 'string' || !isMediaType.test(mediaType)) throw refused('a file needs a mediaType');
  const data = typeof url === 'string' ? bytesOf(url) : undefined;
  // A URL of the page's choice would be fetched from inside the network of a provider or a model.
  if (data === undefined) throw refused('a file needs its bytes as a data: URL');
  return [{ type, mediaType, data, ...(typeof filename === 'string' ? { filename } : {}) }];
}

const isMediaType = /^[\w.+*-]{1,100}\/[\w.+*-]{1,100}$/;
const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The bytes of a `data:` URL, as base64; undefined for another URL, and for no bytes. */
function bytesOf(url: string): string | undefined {
  const comma = url.indexOf(',');
  if (!url.startsWith('data:') || comma < 0) return undefined;
  const content = url.slice(comma + 1);
  if (url.slice(0, comma).endsWith(';base64')) return isBase64.test(content) ? content : undefined;
  try {
    return Buffer.from(decodeURIComponent(content)).toString('base64') || undefined;
  } catch {
    return undefined;
  }
}

function isAssistant(message: unknown): boolean {
  return isObject(message) && message.role === 'assistant';
}

/** The message that the page wants to continue: the one that it names, or the last one. */
function continuedIn(messages: readonly unknown[], messageId: string | undefined): PostedChat['continued'] {
  const isNamed = (message: unknown) => isObject(message) && message.id === messageId;
  const named = messageId === undefined ? undefined : messages.findLast(isNamed);
  const message = isAssistant(named) ? named : messages.at(-1);
  if (!isObject(message) || !isAssistant(message)) return undefined;
  const parts = partsOf(message);
  const callIds = parts.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? toolCallId : []));
  const steps = parts.filter(({ type }) => type === 'step-start').length;
  return { id: idOf(message.id, 'the id of a message'), callIds: callIds.toReversed(), steps };
}

/** The answers in a message: approvals with a decision, and outputs of calls that the page showed with an open question. */
function answersIn(message: unknown): PostedAnswer[] {
  if (!isAssistant(message)) return [];
  const parts = partsOf(message);
  const questions = new Map<string, string>();
  for (const { type, data } of parts)
    if (type === 'data-pawl-wait' && isObject(data) && data.kind === 'question' && data.state === 'open')
      if (typeof data.id === 'string' && typeof data.callId === 'string') questions.set(data.callId, data.id);
  return parts.flatMap((part) => {
    const { toolCallId: callId, state } = part;
    if (typeof callId !== 'string') return [];
    if (state === 'approval-responded') return decisionIn(part, callId);
    const waitId = questions.get(callId);
    return waitId === undefined ? [] : outputIn(part, { waitId, callId });
  });
}

function decisionIn({ approval }: Record<string, unknown>, callId: string): PostedAnswer[] {
  if (!isObject(approval) || typeof approval.id !== 'string' || typeof approval.approved !== 'boolean') return [];
  const { id: waitId, approved, reason, descriptor } = approval;
  const text = typeof reason === 'string' && reason !== '' ? reason.slice(0, MAX_ANSWER_NOTE_CHARS) : undefined;
  if (!approved) return [{ waitId, callId, how: 'deny', ...(text === undefined ? {} : { reason: text }) }];
  const digest = isObject(descriptor) && typeof descriptor.digest === 'string' ? { digest: descriptor.digest } : {};
  return [{ waitId, callId, how: 'approve', ...(text === undefined ? {} : { note: text }), ...digest }];
}

/** The body is JSON, and so is each value in it. */
function outputIn(
  { state, output, errorText, preliminary }: Record<string, unknown>,
  of: { readonly waitId: string; readonly callId: string },
): PostedAnswer[] {
  if (state === 'output-available' && output !== undefined && preliminary !== true)
    return [{ ...of, how: 'answer', value: output as JsonValue }];
  return state === 'output-error' && typeof errorText === 'string' ? [{ ...of, how: 'answer', value: errorText }] : [];
}
