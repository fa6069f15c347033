// The one filter for all output. Ids, names, reasons, errors and answers come from models, tools, stores and other users: they
// must not control the terminal, or the CI system that reads the log. Each pass is one scan.

const ESC = 0x1b;
const BELL = 0x07;
const ST = 0x9c;
/** The characters after ESC, and their one-character forms: control sequences, and sequences that contain a text. */
const CSI: readonly number[] = [0x5b, 0x9b];
const TEXTS: readonly number[] = [0x50, 0x58, 0x5d, 0x5e, 0x5f, 0x90, 0x98, 0x9d, 0x9e, 0x9f];

/** Removes the sequences that set colours, move the cursor, set the window's title or write to the clipboard. */
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
  /** No sequence with a text ends after this position: the search runs once. */
  #unendedFrom = Number.POSITIVE_INFINITY;

  constructor(text: string) {
    this.#text = text;
  }

  /** The position of the next sequence; the length of the text if there is none. */
  next(from: number): number {
    let at = from;
    while (at < this.#text.length && !isIntroducer(this.#text.charCodeAt(at))) at += 1;
    return at;
  }

  /** The position after the sequence at `at`. Of an incomplete sequence only the introducer is removed. */
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

/** False for NaN, which is the code after the end of a text. */
function isBetween(code: number, first: number, last: number): boolean {
  return code >= first && code <= last;
}

/** Every kind of line break. */
const lineBreaks = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;
/** Control characters and invisible characters: some reverse the direction of text. Emoji and scripts need joiners. */
const controls = /[^\P{Cc}\n\t]|[^\P{Cf}\u200c\u200d]/gu;

/** Removes control characters from a text of several lines: only visible characters, spaces, tabs and line breaks remain. */
export function harmless(text: string): string {
  return withoutCommands(withoutSequences(text.toWellFormed()).replace(lineBreaks, '\n').replace(controls, ''));
}

/** Removes control characters and line breaks from a text, so that it is one line: for ids, names, reasons. */
export function oneLine(text: string): string {
  const seen = withoutSequences(text.toWellFormed())
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}]/gu, '');
  return withoutCommands(seen.trim());
}

/**
 * Lines that begin with `::` are commands to GitHub Actions (`::error::`, `::add-mask::`). `##[` and `##vso[` are commands to it
 * and to Azure Pipelines at any position, `##teamcity[` to TeamCity. A space makes them plain text.
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
 * Replaces invisible characters in a text by their codes, for users who must see them.
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
