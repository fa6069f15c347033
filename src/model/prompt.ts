import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { isObject } from '../values/json.ts';
import { hasFileUrl, isFileUrl, type Message } from '../values/message.ts';

/**
 * What a model is sent: the system prompt first (none when it is empty), then the transcript.
 * @param hasUrls whether a message may have a file by URL; to look for one in each message costs more than all the rest
 */
export function promptOf(system: string, messages: readonly Message[], hasUrls = true): LanguageModelV4Prompt {
  const transcript = hasUrls ? messages.map(withUrls) : messages;
  // Not by spreading: of a long transcript that takes three times the room.
  const beginning: Message[] = system === '' ? [] : [{ role: 'system', content: system }];
  return beginning.concat(transcript);
}

/** In a transcript URLs are strings, because it is JSON; providers are promised URL objects. */
function withUrls(message: Message): Message {
  if (typeof message.content === 'string' || !hasFileUrl(message)) return message;
  return { ...message, content: message.content.map(reviveUrl) } as Message;
}

function reviveUrl(part: unknown): unknown {
  if (!isObject(part) || !isFileUrl(part)) return part;
  if (isObject(part.data)) return { ...part, data: { ...part.data, url: toUrl(part.data.url) } };
  const output = part.output as { readonly value: readonly unknown[] };
  return { ...part, output: { ...output, value: output.value.map(reviveUrl) } };
}

/** A string that is no URL goes out as it is: the provider's complaint says more than ours could. */
function toUrl(url: unknown): unknown {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url) : url;
}
