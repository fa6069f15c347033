/*
 * The patterns of a `.gitignore`, matched as Git matches them. The time for each byte of the name is linear in the length of the
 * pattern: a clone may contain any patterns. Names are compared by their bytes in UTF-8, as in Git.
 */

/** The most steps of a match. All matches of one question share it. */
export interface RuleBudget {
  steps: number;
}

/** The error of a match with patterns that takes too many steps: the patterns are made to be slow. */
export class TooManyStepsError extends Error {}

/** One element of a pattern. `star` is any text without a slash, `deep` any text, `folders` nothing or any text that ends in a slash. */
type Element =
  | { readonly kind: 'byte'; readonly byte: number }
  | { readonly kind: 'set'; readonly has: (byte: number) => boolean }
  | { readonly kind: 'star' | 'deep' | 'folders' };

interface Pattern {
  readonly isNegative: boolean;
  readonly isForFolders: boolean;
  /** Compared with the last name only. */
  readonly isName: boolean;
  readonly elements: readonly Element[];
  /** The least bytes of a matching text. */
  readonly least: number;
  /** Whether a matching text has exactly that many. */
  readonly isExact: boolean;
}

const SLASH = 0x2f;
const BACKSLASH = 0x5c;

/** The patterns of one `.gitignore` file: says whether a path is ignored. */
export class IgnoreRules {
  readonly #patterns: readonly Pattern[];
  readonly #isFolding: boolean;

  /** @param isFolding whether names that differ only in their case are the same, as on file systems of macOS and Windows */
  constructor(text: string, isFolding = false) {
    const lines = text.replace(/^\uFEFF/, '').split('\n');
    this.#isFolding = isFolding;
    this.#patterns = lines.flatMap(
      (line) => parseLine(line.endsWith('\r') ? line.slice(0, -1) : line, isFolding) ?? [],
    );
  }

  /**
   * Returns the result of the last matching rule, or undefined if none matches.
   * @param path relative to the folder of the file, without a slash at its end
   * @throws {TooManyStepsError}
   */
  match(path: string, isFolder: boolean, budget: RuleBudget): 'ignored' | 'included' | undefined {
    const whole = bytesOf(path, this.#isFolding);
    const name = whole.subarray(whole.lastIndexOf(SLASH) + 1);
    const found = this.#patterns.findLast((pattern) => {
      spend(budget, 1);
      if (pattern.isForFolders && !isFolder) return false;
      return fits(pattern, pattern.isName ? name : whole, budget);
    });
    return found && (found.isNegative ? 'included' : 'ignored');
  }
}

function bytesOf(text: string, isFolding: boolean): Buffer {
  const bytes = Buffer.from(isFolding ? foldedBeyondAscii(text) : text);
  if (isFolding) for (let i = 0; i < bytes.length; i++) bytes[i] = folded(bytes[i] ?? 0);
  return bytes;
}

/** Normalized and in lower case, as such file systems compare names. ASCII stays: classes such as `[A-Z]` depend on it. */
function foldedBeyondAscii(text: string): string {
  return text.normalize('NFC').replace(/[^\0-\x7f]+/g, (letters) => letters.toLowerCase());
}

/** The lower case of an ASCII letter. */
const folded = (byte: number) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);

function spend(budget: RuleBudget, steps: number): void {
  budget.steps -= steps;
  if (budget.steps < 0) throw new TooManyStepsError('the patterns of .gitignore take too long');
}

function parseLine(line: string, isFolding: boolean): Pattern | undefined {
  const text = withoutSpaces(line);
  if (text === '' || text.startsWith('#')) return undefined;
  const isNegative = text.startsWith('!');
  const unsigned = isNegative ? text.slice(1) : text;
  const isForFolders = unsigned.endsWith('/');
  const body = isForFolders ? unsigned.slice(0, -1) : unsigned;
  const isName = !body.includes('/');
  const whole = isFolding ? foldedBeyondAscii(body) : body;
  const elements = elementsOf(bytesOf(whole.startsWith('/') ? whole.slice(1) : whole, false), isName, isFolding);
  // An invalid pattern matches nothing.
  if (!elements || elements.length === 0) return undefined;
  const least = elements.filter(isOneByte).length;
  return { isNegative, isForFolders, isName, elements, least, isExact: least === elements.length };
}

/** Spaces at the end do not count, unless a backslash precedes them. */
function withoutSpaces(line: string): string {
  let end: number | undefined;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === ' ') end ??= i;
    else end = undefined;
    if (line[i] !== '\\') continue;
    i += 1;
    if (i === line.length) return line;
  }
  return line.slice(0, end);
}

const isOneByte = ({ kind }: Element): boolean => kind === 'byte' || kind === 'set';

/** The elements of a `.gitignore` pattern. @returns undefined for an incomplete pattern, which matches nothing */
function elementsOf(pattern: Buffer, isName: boolean, isFolding: boolean): readonly Element[] | undefined {
  const elements: Element[] = [];
  // Git compares the part without special characters first, and treats the rest as a pattern of its own.
  const first = isName ? 0 : pattern.findIndex((byte) => SPECIAL.includes(byte));
  for (let i = 0; i < pattern.length; ) {
    const byte = pattern[i] ?? 0;
    if (byte === STAR) {
      const stars = starsAt(pattern, i, i === first || pattern[i - 1] === SLASH);
      elements.push({ kind: isName ? 'deep' : stars.kind });
      i = stars.end;
    } else if (byte === OPENING) {
      const set = setAt(pattern, i + 1);
      if (!set) return undefined;
      elements.push({ kind: 'set', has: (each) => each !== SLASH && hasByte(set, each, isFolding) });
      i = set.end;
    } else if (byte === QUESTION) {
      elements.push({ kind: 'set', has: (each) => each !== SLASH });
      i += 1;
    } else {
      if (byte === BACKSLASH) i += 1;
      if (i === pattern.length) return undefined;
      const literal = pattern[i] ?? 0;
      elements.push({ kind: 'byte', byte: isFolding ? folded(literal) : literal });
      i += 1;
    }
  }
  return elements;
}

/**
 * Reads the stars at a position of a pattern.
 * @param isAtStart whether the stars are at the start of a name: only then two of them can match folders
 */
function starsAt(pattern: Buffer, at: number, isAtStart: boolean): { kind: 'star' | 'deep' | 'folders'; end: number } {
  let end = at;
  while (pattern[end] === STAR) end += 1;
  if (end - at === 1 || !isAtStart) return { kind: 'star', end };
  if (pattern[end] === SLASH) return { kind: 'folders', end: end + 1 };
  const isWhole = end === pattern.length || (pattern[end] === BACKSLASH && pattern[end + 1] === SLASH);
  return { kind: isWhole ? 'deep' : 'star', end };
}

/** The bytes of `[…]`. */
interface ByteSet {
  readonly bytes: ReadonlySet<number>;
  readonly isNegated: boolean;
  /** The position after the set. */
  readonly end: number;
}

function hasByte({ bytes, isNegated }: ByteSet, byte: number, isFolding: boolean): boolean {
  const isIn = bytes.has(byte) || (isFolding && byte >= 0x61 && byte <= 0x7a && bytes.has(byte - 0x20));
  return isIn !== isNegated;
}

/**
 * Reads a class in brackets, as the set of bytes that it matches.
 * @param at after the opening bracket
 * @returns undefined without a closing bracket, or for an unknown class
 */
function setAt(pattern: Buffer, at: number): ByteSet | undefined {
  const isNegated = pattern[at] === EXCLAMATION || pattern[at] === CARET;
  const bytes = new Set<number>();
  /** The first byte of a possible range. */
  let before: number | undefined;
  let i = isNegated ? at + 1 : at;
  do {
    const byte = pattern[i];
    if (byte === undefined) return undefined;
    if (byte === MINUS && before !== undefined && pattern[i + 1] !== undefined && pattern[i + 1] !== CLOSING) {
      i += pattern[i + 1] === BACKSLASH ? 2 : 1;
      const last = pattern[i];
      if (last === undefined) return undefined;
      for (let each = before; each <= last; each++) bytes.add(each);
      before = undefined;
    } else if (byte === OPENING && pattern[i + 1] === COLON) {
      const end = pattern.indexOf(CLOSING, i + 2);
      if (end === -1) return undefined;
      if (end - i < 3 || pattern[end - 1] !== COLON) {
        bytes.add(OPENING);
        before = OPENING;
      } else {
        const isIn = classes[pattern.toString('latin1', i + 2, end - 1)];
        if (!isIn) return undefined;
        for (let each = 0; each < 128; each++) if (isIn(each)) bytes.add(each);
        before = undefined;
        i = end;
      }
    } else {
      if (byte === BACKSLASH) i += 1;
      before = pattern[i];
      if (before === undefined) return undefined;
      bytes.add(before);
    }
    i += 1;
  } while (pattern[i] !== CLOSING);
  return { bytes, isNegated, end: i + 1 };
}

const [STAR, QUESTION, OPENING, CLOSING] = [0x2a, 0x3f, 0x5b, 0x5d];
const [EXCLAMATION, CARET, MINUS, COLON] = [0x21, 0x5e, 0x2d, 0x3a];
const SPECIAL: readonly number[] = [STAR, QUESTION, OPENING, BACKSLASH];

const isUpper = (byte: number) => byte >= 0x41 && byte <= 0x5a;
const isLower = (byte: number) => byte >= 0x61 && byte <= 0x7a;
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;
const isSpace = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
const isGraphic = (byte: number) => byte >= 0x21 && byte <= 0x7e;
const isAlnum = (byte: number) => isUpper(byte) || isLower(byte) || isDigit(byte);

const classes: Readonly<Record<string, ((byte: number) => boolean) | undefined>> = {
  __proto__: null as never,
  alnum: isAlnum,
  alpha: (byte) => isUpper(byte) || isLower(byte),
  blank: (byte) => byte === 0x20 || byte === 0x09,
  cntrl: (byte) => byte < 0x20 || byte === 0x7f,
  digit: isDigit,
  graph: isGraphic,
  lower: isLower,
  print: (byte) => byte === 0x20 || isGraphic(byte),
  punct: (byte) => isGraphic(byte) && !isAlnum(byte),
  space: isSpace,
  upper: isUpper,
  xdigit: (byte) => isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66),
};

/** Follows all ways through the pattern at once, byte by byte, and none of them twice. */
function fits({ elements, least, isExact }: Pattern, text: Buffer, budget: RuleBudget): boolean {
  if (isExact ? text.length !== least : text.length < least) return false;
  const last = elements.at(-1);
  if (last?.kind === 'byte' && last.byte !== text.at(-1)) return false;
  let places = new Places(elements);
  let next = new Places(elements);
  places.enter(0);
  for (const byte of text) {
    spend(budget, places.count);
    next.clear();
    for (let i = 0; i < places.count; i++) step(elements, places.at(i), { byte, next });
    if (next.count === 0) return false;
    [places, next] = [next, places];
  }
  return places.has(elements.length);
}

function step(
  elements: readonly Element[],
  place: number,
  { byte, next }: { readonly byte: number; readonly next: Places },
): void {
  const element = elements[place];
  if (!element) return;
  if (element.kind === 'byte') {
    if (element.byte === byte) next.enter(place + 1);
  } else if (element.kind === 'set') {
    if (element.has(byte)) next.enter(place + 1);
  } else if (element.kind === 'star') {
    if (byte !== SLASH) next.enter(place);
  } else {
    next.stay(place);
    if (element.kind === 'deep' || byte === SLASH) next.enter(place + 1);
  }
}

/** The places in a pattern that a text can have reached. */
class Places {
  count = 0;
  readonly #elements: readonly Element[];
  readonly #all: Int32Array;
  /** For each place the round in which it was entered: so clearing is one addition. */
  readonly #enteredIn: Int32Array;
  #round = 1;

  constructor(elements: readonly Element[]) {
    this.#elements = elements;
    this.#all = new Int32Array(elements.length + 1);
    this.#enteredIn = new Int32Array(elements.length + 1);
  }

  at(i: number): number {
    return this.#all[i] ?? 0;
  }

  has(place: number): boolean {
    return this.#enteredIn[place] === this.#round;
  }

  clear(): void {
    this.count = 0;
    this.#round += 1;
  }

  /** An element that can match nothing is also skipped. */
  enter(place: number): void {
    for (let at = place; ; at++) {
      this.stay(at);
      const element = this.#elements[at];
      if (!element || isOneByte(element)) return;
    }
  }

  stay(place: number): void {
    if (this.has(place)) return;
    this.#enteredIn[place] = this.#round;
    this.#all[this.count] = place;
    this.count += 1;
  }
}
