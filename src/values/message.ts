import type {
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { NotJsonError } from './errors.ts';
import { hiddenField } from './hidden.ts';
import { frozenJson, isObject, MESSAGE_DEPTH } from './json.ts';

/** One message of a transcript: the AI SDK's provider message as pure, deep-frozen JSON. */
export type Message = LanguageModelV4Message;
export type AssistantMessage = Extract<Message, { role: 'assistant' }>;
export type ToolMessage = Extract<Message, { role: 'tool' }>;
export type ToolCallPart = LanguageModelV4ToolCallPart;
export type ToolResultPart = LanguageModelV4ToolResultPart;
export type ToolOutput = LanguageModelV4ToolResultOutput;

/**
 * The JSON text of each message of a transcript. Pawl encodes a message once, when it enters: this proves that it is JSON,
 * gives its size, and the stores write this very text. After the save only its size is kept, in bytes; of a message that a store has
 * parsed it is not known before it is asked for (`undefined`).
 */
const encodings = hiddenField<string | number | undefined>();

/**
 * Takes a message into a transcript: checks that it is JSON, copies it, freezes the copy and encodes it once.
 * @throws {NOT_JSON} with the path of the value that JSON cannot hold, or for a value that is not an object
 */
export function enterMessage(message: unknown, path = 'message'): Message {
  if (encodings.has(message)) return message as Message;
  const frozen = frozenJson(message, path, MESSAGE_DEPTH);
  if (!isObject(frozen)) throw new NotJsonError(`${path} is not a message: a message is an object with a role`);
  return enterFrozen({ ...frozen } as unknown as Message);
}

/** Takes in a new message whose members are deep-frozen JSON: encodes it once, without a check or a copy. */
export function enterFrozen<M extends Message>(message: M): M {
  encodings.put(message, JSON.stringify(message));
  return Object.freeze(message);
}

/** Takes in a new message that is made of JSON of its run: freezes it and encodes it once, without a check or a copy. */
export function enterMade<M extends Message>(message: M): M {
  return enterFrozen(freezeDeep(message));
}

/** Returns the JSON text of a message. Until it is stored, a message of a transcript has it. */
export function encodeMessage(message: Message): string {
  const known = encodings.get(message);
  if (typeof known === 'string') return known;
  const text = JSON.stringify(message);
  if (known === undefined && encodings.has(message)) encodings.put(message, Buffer.byteLength(text));
  return text;
}

/** Returns the size of a message's JSON text, bytes; computes it at most once for a message of a transcript. */
export function sizeOfMessage(message: Message): number {
  const known = encodings.get(message);
  return typeof known === 'number' ? known : Buffer.byteLength(encodeMessage(message));
}

/** Frees the memory of an encoding after the message is stored. */
export function dropEncoding(message: Message): void {
  const known = encodings.get(message);
  if (typeof known === 'string') encodings.put(message, Buffer.byteLength(known));
}

/** Takes in a message that a store has just parsed: freezes it without a copy, a check or an encoding. */
export function enterStored(message: Message): Message {
  if (encodings.has(message)) return message;
  // A host's own store may return frozen messages.
  const open = Object.isExtensible(message) ? message : { ...message };
  encodings.put(open, undefined);
  return freezeDeep(open);
}

function freezeDeep<T extends object>(value: T): T {
  for (const item of Object.values(value)) if (typeof item === 'object' && item !== null) freezeDeep(item);
  return Object.freeze(value);
}

/** Returns whether a message has a file by URL, in a part or in a tool's result. */
export function hasFileUrl(message: Message): boolean {
  return typeof message.content !== 'string' && message.content.some(isFileUrl);
}

/** Returns whether a part is a file by URL, or a tool result with one. */
export function isFileUrl(part: unknown): boolean {
  if (!isObject(part)) return false;
  if (isObject(part.data)) return part.data.type === 'url' && typeof part.data.url === 'string';
  if (!isObject(part.output) || part.output.type !== 'content') return false;
  return Array.isArray(part.output.value) && part.output.value.some(isFileUrl);
}

/** Returns the text of a message: its text parts, joined. */
export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content;
  let text = '';
  for (const part of message.content) if (part.type === 'text') text += part.text;
  return text;
}

/** Returns the tool calls of a message that Pawl has to run, without those that the provider ran. */
export function toolCallsOf(message: Message): ToolCallPart[] {
  return message.role === 'assistant' ? message.content.filter(isToolCall) : [];
}

/** Returns whether a message has tool calls that the run has to make. */
export function hasToolCalls(message: Message): boolean {
  return message.role === 'assistant' && message.content.some(isToolCall);
}

function isToolCall(part: AssistantMessage['content'][number]): part is ToolCallPart {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}

/** Returns the tool results of a tool message, in order. */
export function toolResultsOf(message: Message): ToolResultPart[] {
  if (message.role !== 'tool') return [];
  return message.content.filter((part): part is ToolResultPart => part.type === 'tool-result');
}

/** Returns whether a stored value is a list of messages. `every` skips the holes of a sparse array; `includes` does not. */
export function isMessages(value: unknown): boolean {
  return Array.isArray(value) && !value.includes(undefined) && value.every(isMessage);
}

/** Returns whether a stored value is a message. */
export function isMessage(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (value.role === 'system') return typeof value.content === 'string';
  return (
    ['user', 'assistant', 'tool'].includes(String(value.role)) &&
    Array.isArray(value.content) &&
    value.content.every(isObject)
  );
}
