import { harmless } from './control-characters.ts';

const printableAscii = /^[\x20-\x7e]*$/;
const zeroWidth = /[\p{Mn}\p{Me}\p{Cf}\p{Default_Ignorable_Code_Point}\u1160-\u11ff\ud7b0-\ud7fb]/u;
/** The East Asian Wide blocks, for which JavaScript has no property, and emoji. */
const doubleWidth =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\ua4c6\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|(?!\p{RI})\p{Emoji_Presentation}/u;

/**
 * Makes a text safe to draw in a fixed layout of a terminal: `harmless`, of known width, lines ended by `\n`. Terminals
 * differ in the width of emoji sequences, so each is drawn as its first emoji, and a flag as its two letters.
 * @example drawable('\u001b[31m👩‍🚀\tand 🇫🇷') // '👩  and FR'
 */
export function drawable(text: string): string {
  const plain = harmless(text).replaceAll('\t', '  ');
  if (/^[\n\x20-\x7e]*$/.test(plain)) return plain;
  return Array.from(graphemes().segment(plain), ({ segment }) => drawableGrapheme(segment)).join('');
}

/** Makes a text safe to draw in a terminal, as one line. */
export function drawableLine(text: string): string {
  return drawable(text).replace(/\s+/g, ' ').trim();
}

/** Returns how many columns of a terminal a line of `drawable` text takes. @example displayWidth('漢字!') // 5 */
export function displayWidth(line: string): number {
  if (printableAscii.test(line)) return line.length;
  let width = 0;
  for (const character of line) width += characterWidth(character);
  return width;
}

/** Returns the beginning of a line that fits into so many columns, with the combining marks of its last character. */
export function fittingPart(line: string, columns: number): string {
  if (printableAscii.test(line)) return line.slice(0, Math.max(0, columns));
  let width = 0;
  let length = 0;
  for (const character of line) {
    width += characterWidth(character);
    if (width > columns) break;
    length += character.length;
  }
  return line.slice(0, length);
}

/** Cuts a line to so many columns of a terminal; an ellipsis shows that it was cut. */
export function cutToWidth(line: string, columns: number): string {
  if (displayWidth(line) <= columns) return line;
  return columns < 1 ? '' : `${fittingPart(line, columns - 1)}…`;
}

function characterWidth(character: string): 0 | 1 | 2 {
  if (printableAscii.test(character)) return 1;
  if (zeroWidth.test(character)) return 0;
  return doubleWidth.test(character) ? 2 : 1;
}

let segmenter: Intl.Segmenter | undefined;
/** Made at the first use: most output is ASCII. */
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter;
}

const LETTER_OF_FLAG = 0x1f1e6 - 0x41;

function drawableGrapheme(grapheme: string): string {
  if (grapheme === '\n' || printableAscii.test(grapheme)) return grapheme;
  if (/^\p{RI}/u.test(grapheme)) {
    return Array.from(grapheme, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) - LETTER_OF_FLAG)).join(
      '',
    );
  }
  const isPicture = /^\p{Extended_Pictographic}|\u20e3$/u.test(grapheme);
  const seen = isPicture ? String.fromCodePoint(grapheme.codePointAt(0) ?? 0) : grapheme;
  return seen.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '');
}
