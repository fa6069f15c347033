const FENCE = '```';
const LANGUAGE = 'json';

/**
 * Returns the content of a Markdown code fence that holds a whole answer, since models often wrap JSON in one. Returns any
 * other text unchanged. The content begins on the line below the opening fence, or beside it if it is a JSON object or array.
 * The function scans the text a fixed number of times: a regular expression for spaces around a body takes quadratic or cubic
 * time.
 */
export function withoutFence(text: string): string {
  const answer = text.trim();
  const isFenced = answer.startsWith(FENCE) && answer.endsWith(FENCE) && answer.length >= 2 * FENCE.length;
  if (!isFenced) return text;
  const inside = answer.slice(FENCE.length, -FENCE.length);
  const body = inside.startsWith(LANGUAGE) ? inside.slice(LANGUAGE.length) : inside;
  const content = body.trimStart();
  const spaces = body.slice(0, body.length - content.length);
  const lineBreak = spaces.lastIndexOf('\n');
  if (lineBreak === -1) return content.startsWith('{') || content.startsWith('[') ? content.trimEnd() : text;
  const lines = body.slice(lineBreak + 1);
  return lines.endsWith('\n') ? lines.slice(0, -1) : lines;
}

/** How many characters of a text are shown. */
const SHOWN_CHARACTERS = 64;

/**
 * Returns a model's text as part of one line of plain ASCII: its first characters, all others as `\u` escapes. A second call
 * changes nothing.
 */
export function printable(text: unknown, characters: number = SHOWN_CHARACTERS): string {
  if (typeof text !== 'string') return `a value of type ${typeof text}`;
  const shown = text.slice(0, characters).replace(/[^\x20-\x7e]/g, escaped);
  return text.length > characters ? `${shown}...` : shown;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
