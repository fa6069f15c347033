import type { LanguageModelV4StreamPart, LanguageModelV4ToolCall, LanguageModelV4ToolResult } from '@ai-sdk/provider';
import { ModelError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import type { AssistantMessage, ToolCallPart, ToolResultPart } from '../values/message.ts';
import { recordedName } from '../values/tool-name.ts';

export type ReplyPart = AssistantMessage['content'][number];
type StreamPart<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>;

/** Adds the provider's metadata of a reply's part to that part, so that the model gets it back unread and unchanged. */
export function withMetadata<Part extends object>(part: Part, metadata: unknown): Part {
  return metadata === undefined ? part : { ...part, providerOptions: metadata };
}

/**
 * Converts a tool call of a model's reply to a message part, and parses its input. Its input is parsed here, once. Text
 * that is not JSON stays a string: the tool's validation refuses it. `isCut`: the reply reached its length limit, so "no
 * input" may be lost input.
 */
export function toolCallPart(call: LanguageModelV4ToolCall, isCut: boolean): ToolCallPart {
  const { toolCallId, toolName, providerExecuted } = call;
  if (typeof toolCallId !== 'string' || typeof toolName !== 'string') {
    throw new ModelError('the model sent a tool call without an id or a name');
  }
  const input = parseInput(call.input, isCut);
  const part = { type: 'tool-call' as const, toolCallId, toolName: recordedName(toolName), input };
  return withMetadata(providerExecuted === true ? { ...part, providerExecuted } : part, call.providerMetadata);
}

function parseInput(input: unknown, isCut: boolean): unknown {
  if (typeof input !== 'string') return input;
  if (input.trim() === '') return isCut ? input : {};
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** Converts the result of a tool that the provider ran itself to a message part. */
export function toolResultPart(part: LanguageModelV4ToolResult): ToolResultPart {
  const { toolCallId, result, isError } = part;
  const toolName = recordedName(part.toolName);
  const output: ToolResultPart['output'] = isError
    ? { type: 'error-json', value: result ?? null }
    : typeof result === 'string'
      ? { type: 'text', value: result }
      : { type: 'json', value: result ?? null };
  return withMetadata({ type: 'tool-result', toolCallId, toolName, output }, part.providerMetadata);
}

/** Converts a file or a provider's own part of a reply to JSON: bytes become base64, URLs become strings. */
export function wholePart(part: StreamPart<'file' | 'reasoning-file' | 'custom'>): ReplyPart {
  const { providerMetadata, ...rest } = part;
  const json = 'data' in rest ? { ...rest, data: fileData(rest.data) } : rest;
  return withMetadata(json, providerMetadata) as ReplyPart;
}

function fileData(data: unknown): unknown {
  if (!isObject(data)) return data;
  if (data.data instanceof Uint8Array) return { ...data, data: Buffer.from(data.data).toString('base64') };
  return data.url instanceof URL ? { ...data, url: data.url.href } : data;
}
