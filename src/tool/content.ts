import { isObject } from '../values/json.ts';

/** The same in every copy of the package. JSON has no symbols: a parsed value cannot carry it. */
const brand: unique symbol = Symbol.for('pawl.tool-content') as never;

/** Options that a provider reads of a part, by provider. */
export type ContentOptions = { readonly [provider: string]: { readonly [key: string]: unknown } };

/** The content of a file: bytes or their base64, a text, a URL, or the ids that providers gave an uploaded file. */
export type ToolFileData =
  | Uint8Array
  | string
  | URL
  | { readonly type: 'data'; readonly data: Uint8Array | string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'url'; readonly url: URL | string }
  | { readonly type: 'reference'; readonly reference: { readonly [provider: string]: string } };

/** One part of a tool's result, as the model reads it. */
export type ToolContentPart =
  | { readonly type: 'text'; readonly text: string; readonly providerOptions?: ContentOptions }
  | {
      readonly type: 'file';
      readonly mediaType: string;
      /** A bare string is base64. A URL is for tools with `allowUrls: true`. */
      readonly data: ToolFileData;
      readonly filename?: string;
      readonly providerOptions?: ContentOptions;
    }
  | { readonly type: 'custom'; readonly providerOptions?: ContentOptions };

/** A result that is content for the model. Made by `toolContent`. */
export interface ToolContent {
  readonly [brand]: true;
  readonly content: readonly ToolContentPart[];
}

/**
 * Makes the parts of a tool's result that a model reads: texts, files, provider options. No other value does: an object with a
 * `content` field, as untrusted APIs and MCP servers send it, is JSON for the model.
 *
 * @throws {TypeError} for an empty list, or a part that is not text, file or custom
 * @example
 * execute: async ({ id }) =>
 *   toolContent([
 *     { type: 'text', text: `Page ${id}:` },
 *     { type: 'file', mediaType: 'image/png', data: await screenshotOf(id) },
 *   ]),
 */
export function toolContent(parts: readonly ToolContentPart[]): ToolContent {
  if (!Array.isArray(parts) || parts.length === 0) throw new TypeError('toolContent takes a list of one part or more');
  parts.forEach(checkPart);
  return Object.freeze(
    Object.defineProperty({ content: [...parts] }, brand, { value: true }),
  ) as unknown as ToolContent;
}

/** Returns whether `toolContent` made a value, in this or another copy of the package. */
export function isToolContent(value: unknown): value is ToolContent {
  return isObject(value) && value[brand as never] === true && Array.isArray(value.content);
}

function checkPart(part: unknown, index: number): void {
  const isPart =
    isObject(part) &&
    ((part.type === 'text' && typeof part.text === 'string') ||
      (part.type === 'file' && typeof part.mediaType === 'string' && part.data !== undefined) ||
      part.type === 'custom');
  if (isPart) return;
  throw new TypeError(
    `toolContent: parts[${index}] must be { type: 'text', text }, { type: 'file', mediaType, data } or { type: 'custom' }`,
  );
}
