import type { LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import { toErrorData } from '../run/error-data.ts';
import { frozenJson, isObject } from '../run/json.ts';
import { isToolError, type ToolOutput } from '../run/message.ts';
import type { ImagePart } from '../run/request.ts';

type ContentOutput = Extract<LanguageModelV4ToolResultOutput, { type: 'content' }>;

/** An output that is already in the model's form, from a tool that made it itself. */
export class ReadyOutput {
  readonly output: unknown;

  constructor(output: unknown) {
    this.output = output;
  }
}

/**
 * What the model gets to read of a tool's result: a string as text, `{ content: [...] }` as content (bytes become base64,
 * URLs strings), all else as JSON; nothing at all is `null`.
 * @throws {NotJsonError} with the path of what JSON cannot hold
 */
export function toToolOutput(result: unknown): ToolOutput {
  if (result === undefined || result === null) return { type: 'json', value: null };
  if (typeof result === 'string') return { type: 'text', value: result };
  if (result instanceof ReadyOutput) return readyOutput(result.output);
  if (isContent(result)) return contentOutput(result.content);
  return { type: 'json', value: frozenJson(result, 'result') } as ToolOutput;
}

/** A result with images that the tool attached. An error says why there is no result, and has none to show. */
export function withImages(output: ToolOutput, images: readonly ImagePart[]): ToolOutput {
  if (images.length === 0 || isToolError(output)) return output;
  return { type: 'content', value: [...partsOf(output), ...images] } as ToolOutput;
}

function partsOf(output: ToolOutput): ContentOutput['value'] {
  if (output.type === 'content') return output.value;
  if (output.type === 'execution-denied') return [];
  return [{ type: 'text', text: typeof output.value === 'string' ? output.value : JSON.stringify(output.value) }];
}

export function errorText(value: string): ToolOutput {
  return { type: 'error-text', value };
}

/** What was thrown, for the model: its message. The stack is not its business. */
export function thrownOutput(error: unknown): ToolOutput {
  return errorText(toErrorData(error).message);
}

function readyOutput(output: unknown): ToolOutput {
  if (!isObject(output) || typeof output.type !== 'string') {
    throw new TypeError('toModelOutput must return an object with a type and a value');
  }
  if (output.type === 'content' && Array.isArray(output.value)) return contentOutput(output.value);
  return frozenJson(output, 'result') as ToolOutput;
}

/** A result is content when nothing else can be meant: one key, and each part is one that models know. */
function isContent(result: unknown): result is { content: readonly unknown[] } {
  if (!isObject(result) || !Array.isArray(result.content) || Object.keys(result).length !== 1) return false;
  return result.content.length > 0 && result.content.every(isContentPart);
}

function isContentPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  if (part.type === 'text') return typeof part.text === 'string';
  return part.type === 'file' ? typeof part.mediaType === 'string' : part.type === 'custom';
}

function contentOutput(parts: readonly unknown[]): ToolOutput {
  const value = parts.map((part) =>
    isObject(part) && part.type === 'file' ? { ...part, data: fileData(part.data) } : part,
  );
  return { type: 'content', value: frozenJson(value, 'result.content') as unknown as ContentOutput['value'] };
}

/** The provider's `{ type: 'data' | 'url', … }` as JSON; bytes, a URL or a base64 string may also stand there bare. */
function fileData(data: unknown): unknown {
  if (data instanceof Uint8Array) return { type: 'data', data: Buffer.from(data).toString('base64') };
  if (data instanceof URL) return { type: 'url', url: data.href };
  if (typeof data === 'string') return { type: 'data', data };
  if (!isObject(data)) return data;
  if (data.data instanceof Uint8Array) return { ...data, data: Buffer.from(data.data).toString('base64') };
  return data.url instanceof URL ? { ...data, url: data.url.href } : data;
}
