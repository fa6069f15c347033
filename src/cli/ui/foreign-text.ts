// The one filter for what is printed. Ids, names, reasons, errors and answers come from models, tools, stores and other users: none
// of it steers the terminal, or the machine of a continuous integration that reads the log. Each pass is one scan.

const ESC = 0x1b;
const BELL = 0x07;
const ST = 0x9c;
/** What may follow ESC, and the same as one character: a control sequence, and those that hold a text of any length. */
const CSI: readonly number[] = [0x5b, 0x9b];
const TEXTS: readonly number[] = [0x50, 0x58, 0x5d, 0x5e, 0x5f, 0x90, 0x98, 0x9d, 0x9e, 0x9f];

/** Text without the sequences that colour it, move the cursor, name the window or fill the clipboard. */
function withoutSequences(text: string): string {
  const kept: string[] = [];
  const scan = new SequenceScan(text);
  let from = 0;
  for (let at = scan.next(0); at < text.length; at = scan.next(from)) {
    kept.push(text.slice(from, at));
    from = scan.endOf(at);
  }
  kept.push(text.slice(from));
  return kept.join('');
}

class SequenceScan {
  readonly #text: string;
  /** From here on no sequence that holds a text has an end: it is looked for once. */
  #unendedFrom = Number.POSITIVE_INFINITY;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the next sequence begins; the length of the text if there is none. */
  next(from: number): number {
    let at = from;
    while (at < this.#text.length && !isIntroducer(this.#text.charCodeAt(at))) at += 1;
    return at;
  }

  /** Behind the sequence at this place. One that is cut off loses its introducer only. */
  endOf(at: number): number {
    const isEscape = this.#text.charCodeAt(at) === ESC;
    const kind = isEscape ? this.#text.charCodeAt(at + 1) : this.#text.charCodeAt(at);
    const from = isEscape ? at + 2 : at + 1;
    if (CSI.includes(kind)) return this.#endOfControl(from);
    if (TEXTS.includes(kind)) return this.#endOfText(from);
    return isEscape ? this.#endOfEscape(at + 1) : from;
  }

  #endOfControl(from: number): number {
    let at = from;
    while (isBetween(this.#text.charCodeAt(at), 0x20, 0x3f)) at += 1;
    return isBetween(this.#text.charCodeAt(at), 0x40, 0x7e) ? at + 1 : at;
  }

  #endOfText(from: number): number {
    if (from >= this.#unendedFrom) return from;
    for (let at = from; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === BELL || code === ST) return at + 1;
      if (code === ESC && this.#text[at + 1] === '\\') return at + 2;
    }
    this.#unendedFrom = from;
    return from;
  }

  #endOfEscape(from: number): number {
    let at = from;
    while (isBetween(this.#text.charCodeAt(at), 0x20, 0x2f)) at += 1;
    return isBetween(this.#text.charCodeAt(at), 0x30, 0x7e) ? at + 1 : at;
  }
}

function isIntroducer(code: number): boolean {
  return code === ESC || (code >= 0x90 && (CSI.includes(code) || TEXTS.includes(code)));
}

/** False for NaN, which stands behind the end of a text. */
function isBetween(code: number, first: number, last: number): boolean {
  return code >= first && code <= last;
}

/** Every kind of line break. */
const lineBreaks = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;
/** Control characters, and characters that are not seen: some turn the direction of what follows. Emoji and scripts need joiners. */
const controls = /[^\P{Cc}\n\t]|[^\P{Cf}\u200c\u200d]/gu;

/** Text of several lines that steers nothing: what is left is seen, or parts words and lines. */
export function harmless(text: string): string {
  return withoutCommands(withoutSequences(text.toWellFormed()).replace(lineBreaks, '\n').replace(controls, ''));
}

/** The same as one line, without joiners: for ids, names, reasons. */
export function oneLine(text: string): string {
  const seen = withoutSequences(text.toWellFormed())
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}]/gu, '');
  return withoutCommands(seen.trim());
}

/**
 * Lines that begin with `::` are commands to GitHub Actions (`::error::`, `::add-mask::`); `##[` and `##vso[` are such to it and to
 * Azure Pipelines wherever they stand, `##teamcity[` to TeamCity. A space makes text of them.
 */
function withoutCommands(text: string): string {
  const lines = text.includes('::') ? text.split('\n').map(withoutCommand).join('\n') : text;
  return lines.includes('##') ? lines.replace(/##(?=\[|vso\[|teamcity\[)/g, '## ') : lines;
}

function withoutCommand(line: string): string {
  const at = line.length - line.trimStart().length;
  return line.startsWith('::', at) ? `${line.slice(0, at)}: ${line.slice(at + 1)}` : line;
}

/**
 * Text of several lines in which everything that is not seen is written out, for those who decide by it.
 * @example visible('a\u202eb') // 'a<U+202E>b'
 */
export function visible(text: string): string {
  const shown = text
    .toWellFormed()
    .replace(/\r(?=\n|$)/g, '^M')
    .replace(/[^\P{Cc}\n\t]|\p{Cf}|[\u2028\u2029]/gu, written);
  return withoutCommands(shown);
}

function written(character: string): string {
  return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`;
}

/** JSON in which what steers a terminal is escaped: parsed, it is the same value. */
export function escaped(json: string): string {
  return json
    .replace(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) => character.split('').map(escapeOf).join(''))
    .replace(/##(?=\[|vso\[|teamcity\[)/g, '\\u0023#');
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
