import { displayWidth, drawable, drawableLine, fittingPart } from '../ui/terminal-text.ts';

const STEP = 2_048;

/**
 * Returns the end of a long text: `wanted` characters and a few more. Its beginning does not move while the text grows a
 * little, so that the wrapped lines stay in place.
 */
export function tailOf(text: string, wanted: number): string {
  const start = Math.floor((text.length - wanted) / STEP) * STEP;
  if (start <= 0) return text;
  const lineBreak = text.indexOf('\n', start);
  return text.slice(lineBreak >= 0 && lineBreak <= text.length - wanted ? lineBreak + 1 : start);
}

/** Wraps a text to a number of columns, and returns its last lines. */
export function lastLines(text: string, columns: number, most: number): string[] {
  if (columns < 1 || most < 1 || text.trim() === '') return [];
  const paragraphs = drawable(tailOf(text.trimEnd(), columns * most)).split('\n');
  const lines: string[] = [];
  while (lines.length < most) {
    const paragraph = paragraphs.pop();
    if (paragraph === undefined) break;
    lines.unshift(...wrapped(paragraph.trimEnd(), columns));
  }
  return lines.slice(-most);
}

/** Wraps a text to a number of columns, and returns its first lines; its own line breaks count as spaces. */
export function firstLines(text: string, columns: number, most: number): string[] {
  if (columns < 1 || most < 1) return [];
  const line = drawableLine(text.slice(0, columns * most * 2));
  return line === '' ? [] : wrapped(line, columns).slice(0, most);
}

/** Breaks a line between words, and inside words that are longer than a line. */
function wrapped(paragraph: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of wordsOf(paragraph)) {
    if (displayWidth(line) + displayWidth(word) <= columns) {
      line += word;
      continue;
    }
    if (line !== '') lines.push(line);
    const pieces = broken(line === '' ? word : word.trimStart(), columns);
    line = pieces.pop() ?? '';
    lines.push(...pieces);
  }
  return [...lines, line];
}

/** Each with the spaces before it. */
function wordsOf(paragraph: string): string[] {
  const parts = paragraph.split(/(\s+)/);
  return parts.flatMap((word, i) => (i % 2 === 0 && word !== '' ? [(parts[i - 1] ?? '') + word] : []));
}

/** Splits a word into parts that fit. A character that is wider than a whole line is left out. */
function broken(word: string, columns: number): string[] {
  const pieces: string[] = [];
  let rest = word;
  while (displayWidth(rest) > columns) {
    const piece = fittingPart(rest, columns);
    if (piece !== '') pieces.push(piece);
    rest = rest.slice(piece === '' ? String.fromCodePoint(rest.codePointAt(0) ?? 0).length : piece.length);
  }
  return [...pieces, rest];
}
