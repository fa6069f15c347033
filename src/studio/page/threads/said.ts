/** A message of a thread, as `GET /threads/:id/messages` has it. */
export interface SaidText {
  readonly id: string;
  readonly runId: string;
  readonly index: number;
  readonly message: { readonly role: string; readonly content: string | readonly Part[] };
}

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly toolName?: string;
  readonly mediaType?: string;
}

/** A piece of a message, to be drawn as text. */
interface Piece {
  readonly key: string;
  readonly kind: 'text' | 'note';
  readonly text: string;
}

const MAX_CHARS = 16_384;
const MAX_PARTS = 200;

/** Returns what is shown of a message: its texts, and one line for each call, result and file. Long ones are cut, with a word. */
export function textsOfSaid({ message: { content } }: SaidText): readonly Piece[] {
  const parts: readonly Part[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const pieces = parts.slice(0, MAX_PARTS).map((part, at) => pieceOf(part, `${at}`));
  const left = parts.length - pieces.length;
  return left > 0 ? [...pieces, { key: 'more', kind: 'note', text: `and ${left} more parts: open its run` }] : pieces;
}

function pieceOf({ type, text = '', toolName = '', mediaType = '' }: Part, key: string): Piece {
  if (type === 'text') return { key, kind: 'text', text: shortened(text) };
  if (type === 'tool-call') return { key, kind: 'note', text: `calls ${shortened(toolName)}` };
  if (type === 'tool-result') return { key, kind: 'note', text: `result of ${shortened(toolName)}` };
  return { key, kind: 'note', text: shortened(`${type} ${mediaType}`.trim()) };
}

function shortened(text: string): string {
  if (text.length <= MAX_CHARS) return text;
  return `${text.slice(0, MAX_CHARS).toWellFormed()}… ${text.length - MAX_CHARS} more characters: open its run`;
}
