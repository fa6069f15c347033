import type {
  LanguageModelV2Prompt,
  LanguageModelV3Prompt,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  SharedV4FileData,
} from '@ai-sdk/provider';
import { ModelError } from '../values/errors.ts';

/** The specifications before the current one that models are adapted from. */
export type OlderVersion = 'v3' | 'v2';

type Part = Exclude<LanguageModelV4Message['content'], string>[number];
type ContentItem = Extract<LanguageModelV4ToolResultOutput, { type: 'content' }>['value'][number];
type FileItem = Extract<ContentItem, { type: 'file' }>;

/**
 * Converts a prompt to an older specification of the AI SDK. Parts that the older one knows are passed on unchanged.
 * @throws {MODEL} for parts that it does not know
 */
export function olderPrompt(prompt: LanguageModelV4Prompt, version: 'v3'): LanguageModelV3Prompt;
export function olderPrompt(prompt: LanguageModelV4Prompt, version: OlderVersion): LanguageModelV2Prompt;
export function olderPrompt(prompt: LanguageModelV4Prompt, version: OlderVersion): unknown {
  return prompt.map((message) =>
    typeof message.content === 'string'
      ? message
      : { ...message, content: message.content.flatMap((part) => olderPart(part, version)) },
  );
}

/** Drops a provider's own part: providers of v4 also ignore the parts of other providers. */
function olderPart(part: Part, version: OlderVersion): unknown {
  switch (part.type) {
    case 'file':
      return { ...part, data: fileData(part.data, version), mediaType: fullMediaType(part.mediaType) };
    case 'tool-result':
      return { ...part, output: olderOutput(part.output, version) };
    case 'custom':
      return [];
    case 'reasoning-file':
      throw inexpressible(version, 'a reasoning-file part');
    default:
      return part;
  }
}

function fileData(data: SharedV4FileData, version: OlderVersion): Uint8Array | string | URL {
  switch (data.type) {
    case 'data':
      return data.data;
    case 'text':
      return base64(Buffer.from(data.text));
    case 'url':
      // A provider would take a string for base64.
      if (data.url instanceof URL) return data.url;
      throw inexpressible(version, `a file by the invalid URL ${JSON.stringify(data.url)}`);
    case 'reference':
      throw inexpressible(version, 'a file by reference');
  }
}

function olderOutput(output: LanguageModelV4ToolResultOutput, version: OlderVersion): unknown {
  if (output.type === 'execution-denied' && version === 'v2') {
    return { type: 'error-text', value: output.reason ?? 'the tool call was denied' };
  }
  if (output.type !== 'content') return output;
  return { ...output, value: output.value.map((item) => (version === 'v3' ? itemV3(item) : itemV2(item))) };
}

function itemV3(item: ContentItem): unknown {
  if (item.type !== 'file') return item;
  const { type: _, data, mediaType, filename, ...rest } = item;
  const kind = mediaType.startsWith('image') ? 'image' : 'file';
  switch (data.type) {
    case 'text':
      return { ...rest, type: 'text', text: data.text };
    case 'url':
      return { ...rest, type: `${kind}-url`, url: String(data.url) };
    case 'reference':
      return { ...rest, type: kind === 'image' ? 'image-file-id' : 'file-id', fileId: data.reference };
    case 'data': {
      const named = kind === 'file' && filename !== undefined ? { filename } : {};
      return { ...rest, ...named, type: `${kind}-data`, ...inline(data.data, mediaType) };
    }
  }
}

function itemV2(item: ContentItem): unknown {
  if (item.type === 'text') return item;
  if (item.type === 'file') return fileItemV2(item);
  throw inexpressible('v2', "a custom part of a tool's result");
}

function fileItemV2({ data, mediaType }: FileItem): unknown {
  if (data.type === 'text') return { type: 'text', text: data.text };
  if (data.type === 'data') return { type: 'media', ...inline(data.data, mediaType) };
  throw inexpressible('v2', `a file by ${data.type} in a tool's result`);
}

function inline(data: Uint8Array | string, mediaType: string): { data: string; mediaType: string } {
  return { data: base64(data), mediaType: fullMediaType(mediaType) };
}

function base64(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : Buffer.from(data).toString('base64');
}

/** Only v4 accepts `image` alone as a media type; older versions need `image/*`. */
function fullMediaType(mediaType: string): string {
  return mediaType.includes('/') ? mediaType : `${mediaType}/*`;
}

function inexpressible(version: OlderVersion, what: string): ModelError {
  return new ModelError(`a model of spec ${version} cannot be sent ${what}; use a model of spec v4`);
}
