import type { LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import type { ImagePart } from '../run/request.ts';
import { fetchableUrl } from '../run/request.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { frozenJson, isObject } from '../values/json.ts';
import type { ToolOutput } from '../values/message.ts';
import { isToolError } from '../values/tool-output.ts';
import { isToolContent } from './content.ts';

type ContentOutput = Extract<LanguageModelV4ToolResultOutput, { type: 'content' }>;

/** A tool's output that is already in the model's form: the tool made it itself. */
export class ReadyOutput {
  readonly output: unknown;

  constructor(output: unknown) {
    this.output = output;
  }
}

/** Rules for the output of a tool. */
export interface OutputRule {
  /** Whether its files may be given by URL. */
  readonly allowUrls: boolean;
}

/**
 * Converts a tool's result to the model's form: a string becomes text, a value of `toolContent` becomes content (bytes become
 * base64, URLs become strings), the failure of an MCP tool an error, any other value JSON; `undefined` becomes `null`.
 * @throws {NOT_JSON} with the path of a value that JSON cannot hold
 * @throws {TypeError} for a file by URL if the rule allows none
 */
export function toToolOutput(result: unknown, rule: OutputRule): ToolOutput {
  if (result === undefined || result === null) return { type: 'json', value: null };
  if (typeof result === 'string') return { type: 'text', value: result };
  if (result instanceof ReadyOutput) return readyOutput(result.output, rule);
  if (isToolContent(result)) return contentOutput(result.content, rule);
  if (isMcpError(result)) return mcpErrorOutput(result);
  return { type: 'json', value: frozenJson(result, 'result') } as ToolOutput;
}

/** Adds the images that a tool attached to its output. An error has no images. */
export function withImages(output: ToolOutput, images: readonly ImagePart[]): ToolOutput {
  if (images.length === 0 || isToolError(output)) return output;
  return { type: 'content', value: [...partsOf(output), ...images] } as ToolOutput;
}

function partsOf(output: ToolOutput): ContentOutput['value'] {
  if (output.type === 'content') return output.value;
  if (output.type === 'execution-denied') return [];
  return [{ type: 'text', text: typeof output.value === 'string' ? output.value : JSON.stringify(output.value) }];
}

/** Makes a tool's output of the text of an error. */
export function errorText(value: string): ToolOutput {
  return { type: 'error-text', value };
}

/** Makes a tool's output of a thrown value: its message, for the model. The stack stays out of it. */
export function thrownOutput(error: unknown): ToolOutput {
  return errorText(toErrorData(error).message);
}

/** The result of an MCP tool call that failed, as every client of the protocol has it. */
interface McpError {
  readonly isError: true;
  readonly content: readonly { readonly type: string; readonly text?: unknown }[];
}

/** Returns whether a tool's result is an MCP result that says that the call failed. */
export function isMcpError(result: unknown): result is McpError {
  if (!isObject(result) || result.isError !== true || !Array.isArray(result.content)) return false;
  return result.content.every((part) => isObject(part) && typeof part.type === 'string');
}

/** Makes a tool's output of an MCP result that failed: an error with its texts. */
export function mcpErrorOutput({ content }: McpError): ToolOutput {
  const texts = content.flatMap(({ text }) => (typeof text === 'string' && text !== '' ? [text] : []));
  return errorText(texts.length > 0 ? texts.join('\n') : 'the tool failed, and did not say why');
}

/** Codes of a connection that broke, or brought no answer in time, while a request was under way. */
const BROKEN: ReadonlySet<unknown> = new Set([
  ...['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ERR_STREAM_PREMATURE_CLOSE'],
  ...['UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'],
]);
/** How many causes of an error are looked at. */
const MAX_CAUSES = 5;

/**
 * Returns whether an error says that a connection broke after a request was sent, or that its sender has given it up
 * (`AbortSignal.timeout`); not that none could be made.
 */
export function isBrokenConnection(error: unknown): boolean {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && isObject(cause); depth++) {
    const [code, syscall, name] = ['code', 'syscall', 'name'].map((key) => readProperty(cause, key));
    if (syscall === 'connect') return false;
    const message = String(readProperty(cause, 'message'));
    const isOfMcp = typeof name === 'string' && name.toLowerCase().startsWith('mcp');
    if (BROKEN.has(code) || name === 'TimeoutError') return true;
    if (name === 'TypeError' && message === 'terminated') return true;
    if (isOfMcp && /connection closed|request timed out/i.test(message)) return true;
    cause = readProperty(cause, 'cause');
  }
  return false;
}

function readyOutput(output: unknown, rule: OutputRule): ToolOutput {
  if (!isToolOutput(output)) {
    throw new TypeError('toModelOutput must return an object with a type and the value that is of this type');
  }
  if (output.type === 'content') return contentOutput(output.value as readonly unknown[], rule);
  // As for a result: `undefined` becomes null.
  const ready = output.type === 'json' ? { ...output, value: output.value ?? null } : output;
  return frozenJson(ready, 'result') as ToolOutput;
}

/**
 * Returns whether a value is the output of a tool in the model's form. No provider accepts any other value: sending it
 * would end the run.
 */
export function isToolOutput(output: unknown): output is Record<string, unknown> {
  if (!isObject(output)) return false;
  const { type, value } = output;
  if (type === 'text' || type === 'error-text') return typeof value === 'string';
  if (type === 'json') return true;
  if (type === 'error-json') return value !== undefined;
  const isPart = (part: unknown) => isObject(part) && typeof part.type === 'string';
  return type === 'execution-denied' || (type === 'content' && Array.isArray(value) && value.every(isPart));
}

function contentOutput(parts: readonly unknown[], rule: OutputRule): ToolOutput {
  const value = parts.map((part) =>
    isObject(part) && part.type === 'file' ? { ...part, data: fileData(part.data) } : withBase64(part),
  );
  for (const [index, part] of value.entries()) checkUrl(urlOf(part), `result.content[${index}]`, rule);
  return { type: 'content', value: frozenJson(value, 'result.content') as unknown as ContentOutput['value'] };
}

/** Returns the URL of a part's file, in the fields of any version of the AI SDK. */
function urlOf(part: unknown): unknown {
  if (!isObject(part)) return undefined;
  return isObject(part.data) && part.data.type === 'url' ? part.data.url : part.url;
}

/**
 * Checks the URL of a file in a tool's output. A URL of an untrusted source would make the provider fetch it, with the data
 * inside the URL.
 * @throws {TypeError} which does not show the URL: a signed one is a secret
 */
export function checkUrl(url: unknown, where: string, { allowUrls }: OutputRule): void {
  if (url === undefined) return;
  if (!allowUrls) {
    throw new TypeError(`${where} is a file by a URL, which only a tool with allowUrls: true may give; give its bytes`);
  }
  if (!URL.canParse(String(url))) throw new TypeError(`${where} is a file by a URL that cannot be read`);
  fetchableUrl(new URL(String(url)), where);
}

/** The provider's `{ type: 'data' | 'url', … }` as JSON; bytes, a URL or a base64 string may also be given directly. */
function fileData(data: unknown): unknown {
  if (data instanceof Uint8Array || typeof data === 'string') return { type: 'data', data: base64(data) };
  if (data instanceof URL) return { type: 'url', url: data.href };
  if (!isObject(data)) return data;
  if (data.data instanceof Uint8Array || typeof data.data === 'string') return { ...data, data: base64(data.data) };
  return data.url instanceof URL ? { ...data, url: data.url.href } : data;
}

/** Older AI SDKs have other names for the parts of files. Their data is plain base64. */
function withBase64(part: unknown): unknown {
  return isObject(part) && typeof part.data === 'string' ? { ...part, data: base64(part.data) } : part;
}

function base64(data: Uint8Array | string): string {
  if (typeof data !== 'string') return Buffer.from(data).toString('base64');
  // Base64 has no colon. Some providers take a string with one for a URL.
  if (data.includes(':')) throw new TypeError('the data of a file is neither bytes nor base64; give a URL as a URL');
  return data;
}
