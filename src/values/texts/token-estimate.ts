import { isObject } from '../json.ts';
import type { Message } from '../message.ts';

const CHARACTERS_PER_TOKEN = 4;
/** What providers charge for an image of common size; a document counts the same. */
const TOKENS_PER_FILE = 1_000;
/** A message costs some tokens besides its content. */
const TOKENS_PER_MESSAGE = 4;

/**
 * Estimates the tokens of messages: a quarter of their characters (texts, thoughts, and the JSON of tool calls and results),
 * and a flat 1,000 for an image or file. For "will it fit", not for bills.
 */
export function estimateTokens(messages: readonly Message[]): number {
  let tokens = 0;
  for (const message of messages) tokens += TOKENS_PER_MESSAGE + tokensOf(message.content);
  return tokens;
}

function tokensOf(content: Message['content']): number {
  if (typeof content === 'string') return tokensIn(content);
  let tokens = 0;
  for (const part of content) tokens += tokensOfPart(part);
  return tokens;
}

/** Transcripts may hold parts that are newer than this list, or a host's own. */
function tokensOfPart(part: Exclude<Message['content'], string>[number]): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return tokensIn(part.text);
    case 'tool-call':
      return tokensIn(part.toolName) + tokensIn(part.input);
    case 'tool-result':
      return tokensOfOutput(part.output);
    case 'file':
    case 'reasoning-file':
      return tokensOfFile(part);
    default:
      return tokensIn(part);
  }
}

/** A tool may answer with images: their bytes are not text. */
function tokensOfOutput(output: unknown): number {
  if (!isObject(output)) return tokensIn(output);
  if (output.type !== 'content' || !Array.isArray(output.value)) return tokensIn(output.value ?? output.reason);
  let tokens = 0;
  for (const part of output.value)
    tokens += isObject(part) && typeof part.text === 'string' ? tokensIn(part.text) : tokensOfFile(part);
  return tokens;
}

/** A file may be a text inside the message. */
function tokensOfFile(part: unknown): number {
  const isText = isObject(part) && isObject(part.data) && part.data.type === 'text';
  return isText ? tokensIn((part.data as { readonly text?: unknown }).text) : TOKENS_PER_FILE;
}

function tokensIn(value: unknown): number {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}
