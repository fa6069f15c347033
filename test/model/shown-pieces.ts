import type { ReplyPiece } from '../../src/model/reply-pieces.ts';

/** The text of each block as an observer has it. @throws if a piece does not continue its block */
export function shownBy(pieces: readonly ReplyPiece[]): string[] {
  const shown: string[] = [];
  for (const piece of pieces) {
    if (!('offset' in piece)) continue;
    const before = shown[piece.block] ?? '';
    if (before.length !== piece.offset)
      throw new Error(`a piece at ${piece.offset} follows ${before.length} characters`);
    shown[piece.block] = before + piece.text;
  }
  return shown;
}
