import { RequestError } from '../http/problem.ts';
import { isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import type { AgUiMessage } from './protocol.ts';

/** A part of a new message: a text, or a file by its bytes in base64, or by its URL. */
export type PostedPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'file';
      readonly mediaType: string;
      readonly data: { readonly type: 'data'; readonly data: string } | { readonly type: 'url'; readonly url: string };
    };

/** A message of a person. */
export interface PostedMessage {
  readonly id: string;
  readonly parts: readonly PostedPart[];
}

/** An answer to an open interrupt. */
export interface ResumeEntry {
  readonly interruptId: string;
  readonly status: 'resolved' | 'cancelled';
  readonly payload: JsonValue | undefined;
}

/** What a reader posted, as far as it counts. Its tools, its state and what it says of earlier messages do not. */
export interface PostedInput {
  readonly threadId: string;
  /** The reader's own name for this stream. */
  readonly runId: string;
  readonly parentRunId?: string;
  /** The messages that the reader has: their ids, roles and order. */
  readonly had: readonly AgUiMessage[];
  /** The messages of persons behind the last other one, oldest first. */
  readonly tail: readonly PostedMessage[];
  /** Absent if it answers no interrupt. */
  readonly resume?: readonly ResumeEntry[];
}

const MAX_POSTED_ID_CHARS = 1_024;
const MAX_POSTED_MESSAGES = 20_000;
const MAX_POSTED_PARTS = 100;
const MAX_RESUME_ENTRIES = 1_000;

/**
 * Reads what a reader posted: a `RunAgentInput` of the protocol.
 * @throws {RequestError} BAD_REQUEST with the field that is wrong
 */
export function inputOf(body: JsonObject): PostedInput {
  const { threadId, runId, parentRunId, messages = [], resume } = body;
  const posted = listOf(messages, 'messages', MAX_POSTED_MESSAGES).map(messageOf);
  const isLast = posted.findLastIndex(({ role }) => role !== 'user');
  return {
    threadId: idOf(threadId, 'threadId'),
    runId: idOf(runId, 'runId'),
    ...(parentRunId === undefined || parentRunId === null ? {} : { parentRunId: idOf(parentRunId, 'parentRunId') }),
    had: posted.map(({ id, role }) => bareMessage(id, role)),
    tail: posted.slice(isLast + 1).map(({ id, content }) => ({ id, parts: partsOf(content) })),
    ...(resume === undefined || resume === null
      ? {}
      : { resume: listOf(resume, 'resume', MAX_RESUME_ENTRIES).map(entryOf) }),
  };
}

function wrong(what: string): RequestError {
  return new RequestError('BAD_REQUEST', what);
}

function listOf(value: unknown, name: string, most: number): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(`${name} must be a list`);
  if (value.length > most) throw wrong(`${name} may have ${most} entries`);
  return value;
}

function idOf(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '' && value.length <= MAX_POSTED_ID_CHARS && value.isWellFormed())
    return value;
  throw wrong(`${name} must be a text of 1 to ${MAX_POSTED_ID_CHARS} characters`);
}

function messageOf(value: unknown): { readonly id: string; readonly role: string; readonly content: unknown } {
  if (!isObject(value) || typeof value.role !== 'string') throw wrong('a message must be an object with a role');
  return { id: idOf(value.id, 'the id of a message'), role: value.role, content: value.content };
}

/** Of a message that a reader has, its role decides whether a snapshot removes it. */
function bareMessage(id: string, role: string): AgUiMessage {
  if (role === 'reasoning' || role === 'user') return { id, role, content: '' };
  return { id, role: 'assistant', content: '' };
}

function partsOf(content: unknown): readonly PostedPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return listOf(content, 'the content of a message', MAX_POSTED_PARTS).map(partOf);
}

const mediaTypes = ['image', 'audio', 'video', 'document'];

function partOf(part: unknown): PostedPart {
  if (!isObject(part) || typeof part.type !== 'string')
    throw wrong('a part of a message must be an object with a type');
  if (part.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
  if (!mediaTypes.includes(part.type) || !isObject(part.source)) throw wrong('a part of a message is not known');
  const { type, value, mimeType } = part.source;
  // A provider's own handle of a file says nothing to another provider.
  if (typeof value !== 'string' || (type !== 'data' && type !== 'url'))
    throw wrong('a file must come as data or by its URL');
  const mediaType = mimeType ?? (part.type === 'document' ? undefined : `${part.type}/*`);
  if (typeof mediaType !== 'string') throw wrong('a file must have a mimeType');
  if (type === 'url') return { type: 'file', mediaType, data: { type, url: urlOf(value) } };
  if (!BASE64.test(value)) throw wrong('the data of a file must be base64');
  return { type: 'file', mediaType, data: { type, data: value } };
}

const BASE64 = /^[\w+/-]*={0,2}$/;

function urlOf(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url.href;
  throw wrong('the URL of a file must begin with https:// or http://');
}

function entryOf(value: unknown): ResumeEntry {
  if (!isObject(value)) throw wrong('an entry of resume must be an object');
  const { interruptId, status, payload } = value;
  if (status !== 'resolved' && status !== 'cancelled') throw wrong('the status of an answer is resolved or cancelled');
  return { interruptId: idOf(interruptId, 'interruptId'), status, payload: payload as JsonValue | undefined };
}
