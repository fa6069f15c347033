import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { ModelSource } from '../run/reply.ts';

/** A place in a reply: the index of a part in its message's content, and the UTF-16 units of that part before the piece. */
interface PiecePlace {
  readonly block: number;
  readonly offset: number;
}

/**
 * A part of a reply as it arrives. `end`: no more of this block comes. `void`: the message has its parts at other indexes than
 * the pieces said, because a block stayed empty.
 */
export type ReplyPiece =
  | ({ readonly type: 'text' | 'reasoning'; readonly text: string } & PiecePlace)
  | ({
      readonly type: 'tool-input';
      readonly callId: string;
      readonly name: string;
      readonly text: string;
    } & PiecePlace)
  | { readonly type: 'file'; readonly block: number; readonly mediaType: string }
  | { readonly type: 'source'; readonly source: ModelSource }
  | { readonly type: 'end'; readonly block: number }
  | { readonly type: 'void' };

/** Longer fields are no source that a page can show. */
const MAX_FIELD = 8_192;

/** Returns a source without its metadata; undefined if a field is missing, too long or not a text. */
export function sourceOfPiece(part: Extract<LanguageModelV4StreamPart, { type: 'source' }>): ModelSource | undefined {
  const { sourceType, id, title } = part;
  if (sourceType === 'url') {
    const { url } = part;
    if (!isField(id) || !isField(url)) return undefined;
    return { sourceType, id, url, ...(isField(title) ? { title } : {}) };
  }
  const { mediaType, filename } = part;
  if (sourceType !== 'document' || !isField(id) || !isField(mediaType) || !isField(title)) return undefined;
  return { sourceType, id, mediaType, title, ...(isField(filename) ? { filename } : {}) };
}

function isField(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_FIELD;
}
