const FENCE = '```';
const LANGUAGE = 'json';

/**
 * The content of a Markdown code fence that holds a whole answer, since models like to wrap JSON in one; any other text as
 * it is. The content begins on the line below the opening fence, or beside it when it is a JSON object or array. Scans the
 * text a fixed number of times: expressions that match spaces around a body take quadratic or cubic time.
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
