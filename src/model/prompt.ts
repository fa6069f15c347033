import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { isObject } from '../run/json.ts';
import type { Message } from '../run/message.ts';

/** What a model is sent: the system prompt first (none when it is empty), then the transcript. */
export function promptOf(system: string, messages: readonly Message[]): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = system === '' ? [] : [{ role: 'system', content: system }];
  for (const message of messages) prompt.push(withUrls(message));
  return prompt;
}

/** In a transcript URLs are strings, because it is JSON; providers are promised URL objects. */
function withUrls(message: Message): Message {
  if (typeof message.content === 'string' || !message.content.some(hasUrl)) return message;
  return { ...message, content: message.content.map(reviveUrl) } as Message;
}

function hasUrl(part: unknown): boolean {
  if (!isObject(part)) return false;
  if (isObject(part.data)) return part.data.type === 'url' && typeof part.data.url === 'string';
  if (!isObject(part.output) || part.output.type !== 'content') return false;
  return Array.isArray(part.output.value) && part.output.value.some(hasUrl);
}

function reviveUrl(part: unknown): unknown {
  if (!isObject(part) || !hasUrl(part)) return part;
  if (isObject(part.data)) return { ...part, data: { ...part.data, url: toUrl(part.data.url) } };
  const output = part.output as { readonly value: readonly unknown[] };
  return { ...part, output: { ...output, value: output.value.map(reviveUrl) } };
}

/** A string that is no URL goes out as it is: the provider's complaint says more than ours could. */
function toUrl(url: unknown): unknown {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url) : url;
}
