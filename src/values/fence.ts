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
