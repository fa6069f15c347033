import { RequestError } from '../http/problem.ts';
import { isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import type { AgUiMessage } from './protocol.ts';

/** A part of a new message: a text, or a file by its bytes in base64. */
export type PostedPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly data: string };

/** A message of a person as it was posted; the content is not checked. */
export interface RawMessage {
  readonly id: string;
  readonly content: unknown;
}

/** A new message of a person. */
export interface PostedAgUiMessage {
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
  readonly tail: readonly RawMessage[];
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
export function inputOfAgUi(body: JsonObject): PostedInput {
  const { threadId, runId, parentRunId, messages = [], resume } = body;
  const posted = listOf(messages, 'messages', MAX_POSTED_MESSAGES).map(messageOf);
  const last = posted.findLastIndex(({ role }) => role !== 'user');
  return {
    threadId: idOf(threadId, 'threadId'),
    runId: idOf(runId, 'runId'),
    ...(parentRunId === undefined || parentRunId === null ? {} : { parentRunId: idOf(parentRunId, 'parentRunId') }),
    had: posted.map(({ id, role }) => bareMessage(id, role)),
    tail: posted.slice(last + 1).map(({ id, content }) => ({ id, content })),
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

/**
 * Makes one message of new ones, with the id of the last.
 * @throws {RequestError} BAD_REQUEST for parts that no model gets, and for a message without a text and without a file
 */
export function newMessage(messages: readonly RawMessage[]): PostedAgUiMessage | undefined {
  const last = messages.at(-1);
  if (!last) return undefined;
  const parts = messages.flatMap(({ content }) => partsOf(content));
  if (parts.every(isBlank)) throw wrong('a new message needs a text or a file');
  return { id: last.id, parts };
}

function isBlank(part: PostedPart): boolean {
  return part.type === 'text' && part.text.trim() === '';
}

function partsOf(content: unknown): readonly PostedPart[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return listOf(parts, 'the content of a message', MAX_POSTED_PARTS).flatMap(partOf);
}

const mediaTypes = ['image', 'audio', 'video', 'document'];
const MEDIA_TYPE = /^[\w.+*-]{1,100}\/[\w.+*-]{1,100}$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function partOf(part: unknown): readonly PostedPart[] {
  if (!isObject(part) || typeof part.type !== 'string')
    throw wrong('a part of a message must be an object with a type');
  if (part.type === 'text' && typeof part.text === 'string')
    return part.text === '' ? [] : [{ type: 'text', text: part.text }];
  if (!mediaTypes.includes(part.type) || !isObject(part.source)) throw wrong('a part of a message is not known');
  const { type, value, mimeType } = part.source;
  // The provider of a model would fetch a URL of the page's choice, and knows no file of another provider.
  if (type !== 'data' || typeof value !== 'string') throw wrong('a file must come as data');
  if (typeof mimeType !== 'string' || !MEDIA_TYPE.test(mimeType)) throw wrong('a file must have a mimeType');
  if (!BASE64.test(value)) throw wrong('the data of a file must be base64');
  return [{ type: 'file', mediaType: mimeType, data: value }];
}

function entryOf(value: unknown): ResumeEntry {
  if (!isObject(value)) throw wrong('an entry of resume must be an object');
  const { interruptId, status, payload } = value;
  if (status !== 'resolved' && status !== 'cancelled') throw wrong('the status of an answer is resolved or cancelled');
  return { interruptId: idOf(interruptId, 'interruptId'), status, payload: payload as JsonValue | undefined };
}
