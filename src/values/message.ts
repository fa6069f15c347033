import type {
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { NotJsonError } from './errors.ts';
import { hiddenField } from './hidden-field.ts';
import { frozenJson, isObject, MESSAGE_DEPTH } from './json.ts';

/** One message of a transcript: the AI SDK's provider message as pure, deep-frozen JSON. */
export type Message = LanguageModelV4Message;
export type AssistantMessage = Extract<Message, { role: 'assistant' }>;
export type ToolMessage = Extract<Message, { role: 'tool' }>;
export type ToolCallPart = LanguageModelV4ToolCallPart;
export type ToolResultPart = LanguageModelV4ToolResultPart;
export type ToolOutput = LanguageModelV4ToolResultOutput;

/**
 * The JSON text of each message that entered a transcript. Encoding is done once, on entry: it is the proof that the
 * message is JSON, it gives its size, and the stores write this very text. Once stored it is dropped (`undefined`).
 */
const encodings = hiddenField<string | undefined>();

/**
 * Takes a message in: checks that it is JSON, copies it, freezes the copy and encodes it once.
 * @throws {NotJsonError} with the path of what JSON cannot hold, or of what is no object
 */
export function enterMessage(message: unknown, path = 'message'): Message {
  if (encodings.has(message)) return message as Message;
  const frozen = frozenJson(message, path, MESSAGE_DEPTH);
  if (!isObject(frozen)) throw new NotJsonError(`${path} is no message: a message is an object with a role`);
  const copy = { ...frozen } as unknown as Message;
  encodings.put(copy, JSON.stringify(copy));
  return Object.freeze(copy);
}

/** The JSON text of a message; computed at most once for a message that entered a transcript. */
export function encodeMessage(message: Message): string {
  return encodings.get(message) ?? JSON.stringify(message);
}

/** Gives the memory of an encoding back, once the message is stored. */
export function dropEncoding(message: Message): void {
  if (encodings.has(message)) encodings.put(message, undefined);
}

/** Takes a message in that a store has just parsed: JSON it is, nobody else holds it, and it need not be encoded again. */
export function enterStored(message: Message): Message {
  if (encodings.has(message)) return message;
  // A store of the host's own may give what it has frozen itself.
  const open = Object.isExtensible(message) ? message : { ...message };
  encodings.put(open, undefined);
  return freezeDeep(open);
}

function freezeDeep<T extends object>(value: T): T {
  for (const item of Object.values(value)) if (typeof item === 'object' && item !== null) freezeDeep(item);
  return Object.freeze(value);
}

/** Whether a message has a file that is given by its URL, in a part or in a tool's result. */
export function hasFileUrl(message: Message): boolean {
  return typeof message.content !== 'string' && message.content.some(isFileUrl);
}

/** Whether a part is a file by URL, or a tool result with one. */
export function isFileUrl(part: unknown): boolean {
  if (!isObject(part)) return false;
  if (isObject(part.data)) return part.data.type === 'url' && typeof part.data.url === 'string';
  if (!isObject(part.output) || part.output.type !== 'content') return false;
  return Array.isArray(part.output.value) && part.output.value.some(isFileUrl);
}

/** The text of a message: its text parts, joined. */
export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content;
  let text = '';
  for (const part of message.content) if (part.type === 'text') text += part.text;
  return text;
}

/** The tool calls of a message that we have to run (those the provider ran itself are not among them). */
export function toolCallsOf(message: Message): ToolCallPart[] {
  if (message.role !== 'assistant') return [];
  return message.content.filter(
    (part): part is ToolCallPart => part.type === 'tool-call' && part.providerExecuted !== true,
  );
}

/** The tool results of a tool message, in order. */
export function toolResultsOf(message: Message): ToolResultPart[] {
  if (message.role !== 'tool') return [];
  return message.content.filter((part): part is ToolResultPart => part.type === 'tool-result');
}

/** Whether a tool's output says that the call failed. */
export function isToolError(output: ToolOutput): boolean {
  return output.type === 'error-text' || output.type === 'error-json' || output.type === 'execution-denied';
}

/** Whether a stored value is a list of messages. `every` skips the holes of a sparse array; `includes` does not. */
export function isMessages(value: unknown): boolean {
  return Array.isArray(value) && !value.includes(undefined) && value.every(isMessage);
}

/** Whether a stored value is a message. */
export function isMessage(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (value.role === 'system') return typeof value.content === 'string';
  return (
    ['user', 'assistant', 'tool'].includes(String(value.role)) &&
    Array.isArray(value.content) &&
    value.content.every(isObject)
  );
}
