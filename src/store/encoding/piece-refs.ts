import type { RunHead } from '../../record/checkpoint.ts';
import type { OpenStep } from '../../run/open-step.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { encodeMessage } from '../../values/message.ts';
import type { EncodedHead } from './encode.ts';
import { type Encryption, isEncrypted } from './encryption.ts';

/*
 * Stores each text of a run once. While a step is open, the model's message and the results so far are in the head, and the
 * head is written with each save. When the step closes they become messages. A store that writes heads unchanged writes a
 * result as many times as its step has results, and once more at the end. So the large parts of a head are stored beside it,
 * once, under names. Texts refer to them: `<mark><name><mark>` replaces the part's JSON. Only texts are changed, so a joined
 * text equals the original.
 */

/** A name is between two marks. JSON never contains the character: strings escape it. */
const MARK = '\u001a';

/** Separates pieces that are one text. JSON never contains it either. */
const BETWEEN = '\u001e';

/** Not imported: every import of the package would load streams with it. */
const zlib = () => process.getBuiltinModule('node:zlib');

/** Shorter parts stay in the text. */
const MIN_CHARS = 128;

/** The ledger of a step with more calls is stored in groups of this many. */
const LINES_PER_PIECE = 32;

/** Most runs that are remembered; the parts of a further run are stored once more. */
const MAX_RUNS = 10_000;

/** A part of a record that is stored once. Its text may name parts before it. */
export interface Piece {
  readonly name: string;
  readonly text: string;
}

/** The pieces that texts to be stored name: all of them, and the names of those that the head or the messages need. */
export interface Pieces {
  readonly pieces: readonly Piece[];
  readonly inHead: readonly string[];
  readonly inMessages: readonly string[];
}

/** A piece, and the text that it replaces. */
interface Part extends Piece {
  readonly whole: string;
  /** The parts that its text names. */
  readonly inner: readonly Part[];
}

const none: ReadonlyMap<string, Part> = new Map();

/**
 * Splits the large parts out of a record's or delta's texts, so that each is stored once. It remembers the pieces
 * of each run's last head, because they will become messages.
 */
export class Splitter {
  readonly #parts = new Map<string, ReadonlyMap<string, Part>>();

  /**
   * Splits long texts of a record or delta into pieces.
   * @param messages whether they follow the previous head: those of a whole record do not
   */
  split<T extends EncodedHead & { readonly messages: readonly string[] }>(
    encoded: T,
    head: RunHead,
    { isContinued }: { readonly isContinued: boolean },
  ): T & Pieces {
    const before = (isContinued && this.#parts.get(encoded.runId)) || none;
    if (before.size === 0 && hasNoParts(head)) return { ...encoded, pieces: [], inHead: [], inMessages: [] };
    const naming = new Naming(encoded.revision, before);
    const step = head.openStep ? naming.step(head.openStep) : [];
    const phases = naming.texts(head.completedPhases.map((phase) => JSON.stringify(phase)));
    const undelivered = naming.texts((head.undelivered ?? []).map(encodeMessage));
    this.#remember(encoded.runId, naming.parts);
    const parts = outermostFirst([...before.values()]);
    const said = new Set<Part>();
    const messages = parts.length > 0 ? encoded.messages.map((text) => cut(text, parts, said)) : encoded.messages;
    const inMessages = parts.filter((part) => said.has(part)).flatMap(withInner);
    const inHead = [...naming.parts.values()];
    return {
      ...encoded,
      head: cut(cut(cut(encoded.head, step), phases), undelivered),
      messages,
      pieces: [...new Set([...inMessages, ...inHead])],
      inHead: inHead.map(nameOf),
      inMessages: inMessages.map(nameOf),
    };
  }

  /** The run is deleted, or another owner has it. */
  forget(runId: string): void {
    this.#parts.delete(runId);
  }

  #remember(runId: string, parts: ReadonlyMap<string, Part>): void {
    this.#parts.delete(runId);
    if (parts.size === 0) return;
    this.#parts.set(runId, parts);
    const [oldest] = this.#parts.size > MAX_RUNS ? this.#parts.keys() : [];
    if (oldest !== undefined) this.#parts.delete(oldest);
  }
}

/** Names the parts of one head; parts of the previous head keep their names. */
class Naming {
  /** By the whole text, in the order of heads and messages. */
  readonly parts = new Map<string, Part>();
  readonly #revision: number;
  readonly #before: ReadonlyMap<string, Part>;

  constructor(revision: number, before: ReadonlyMap<string, Part>) {
    this.#revision = revision;
    this.#before = before;
  }

  texts(wholes: readonly string[], inner: readonly Part[] = []): Part[] {
    return wholes.flatMap((whole) => (whole.length < MIN_CHARS ? [] : this.#part(whole, inner)));
  }

  /**
   * The inputs of the calls are in the message, and again in the ledger. With many calls a line of the ledger changes twice.
   */
  step({ message, calls }: OpenStep): Part[] {
    const inputs = calls.map(({ input }) => this.texts([JSON.stringify(input)]));
    const said = this.texts([encodeMessage(message)], inputs.flat());
    const content = calls.map((call, i) => {
      const result = call.result ? this.texts([JSON.stringify(call.result)]) : [];
      return [...(inputs[i] ?? []), ...result];
    });
    if (calls.length === 1) return [...said, ...content.flat()];
    // The lines of many calls are stored in groups: a head that names each line would grow with every call.
    const size = calls.length > LINES_PER_PIECE ? LINES_PER_PIECE : 1;
    const ledger: Part[] = [];
    for (let i = 0; i < calls.length; i += size) {
      const lines = calls.slice(i, i + size).map((call) => JSON.stringify(call));
      ledger.push(...this.texts([lines.join(',')], content.slice(i, i + size).flat()));
    }
    return [...said, ...ledger];
  }

  #part(whole: string, inner: readonly Part[]): Part {
    const known = this.parts.get(whole) ?? this.#before.get(whole);
    const part = known ?? this.#newPart(whole, inner);
    for (const each of withInner(part)) this.parts.set(each.whole, each);
    return part;
  }

  #newPart(whole: string, inner: readonly Part[]): Part {
    const found = new Set<Part>();
    const text = cut(whole, inner, found);
    return { name: this.#name(whole), text, whole, inner: inner.filter((part) => found.has(part)) };
  }

  /** The same for the same save, and different for any other: a name must never lead to another text. */
  #name(whole: string): string {
    const [revision, place, sum] = [this.#revision, this.parts.size, zlib().crc32(whole)];
    return `${revision.toString(36)}.${place.toString(36)}.${sum.toString(36)}`;
  }
}

const hasNoParts = ({ openStep, completedPhases, undelivered }: RunHead) =>
  !openStep && completedPhases.length === 0 && (undelivered ?? []).length === 0;
const nameOf = ({ name }: Piece) => name;
const withInner = (part: Part): readonly Part[] => [...part.inner, part];

/** A message is named as a whole, not by the large inputs that it contains: the rest of its text is stored once too. */
const outermostFirst = (parts: readonly Part[]): readonly Part[] => [
  ...parts.filter(({ inner }) => inner.length > 0),
  ...parts.filter(({ inner }) => inner.length === 0),
];

/** Replaces parts of a text by names. The parts are in the order of the text; those in the text are `found`. */
function cut(text: string, parts: readonly Part[], found?: Set<Part>): string {
  let from = 0;
  let before = '';
  for (const part of parts) {
    const { whole, name } = part;
    const at = text.indexOf(whole, from);
    if (at === -1) continue;
    found?.add(part);
    before += `${text.slice(from, at)}${MARK}${name}${MARK}`;
    from = at + whole.length;
  }
  return from === 0 ? text : before + text.slice(from);
}

/** Joins pieces into one text, a bundle. */
export function bundleOf(pieces: readonly Piece[]): string {
  return pieces.map(({ name, text }) => `${name}${BETWEEN}${text}`).join(BETWEEN);
}

/** Splits a bundle of pieces, the inverse of `bundleOf`. */
export function piecesIn(bundled: string): Piece[] {
  const parts = bundled.split(BETWEEN);
  return Array.from({ length: parts.length >> 1 }, (_, i) => ({
    name: parts[2 * i] ?? '',
    text: parts[2 * i + 1] ?? '',
  }));
}

/** Returns whether a stored text refers to pieces. */
export function isCutText(text: string): boolean {
  return text.includes(MARK);
}

/**
 * Puts the pieces to which a stored text refers back into it.
 * @param find the whole text of a piece
 * @throws {CHECKPOINT_CORRUPT} if one is missing
 */
export function joinPieces(text: string, find: (name: string) => string | undefined): string {
  if (!isCutText(text)) return text;
  const parts = text.split(MARK);
  for (let i = 1; i < parts.length; i += 2) {
    const name = parts[i] ?? '';
    const whole = find(name);
    if (whole === undefined) throw new CheckpointCorruptError(`this record is damaged: its piece ${name} is missing`);
    parts[i] = whole;
  }
  return parts.join('');
}

/* Reads and writes texts that name pieces. A text is split first and encrypted afterwards. */

/** A piece names others, and those name none. */
const MAX_DEPTH = 4;

const partOf = (name: string) => `piece ${name}`;

/** Encrypts the pieces of a body. */
export function encryptPieces(runId: string, pieces: readonly Piece[], encryption: Encryption): Piece[] {
  return pieces.map(({ name, text }) => ({ name, text: encryption.seal(text, runId, partOf(name)) }));
}

export type StoredPieces = ReadonlyMap<string, { readonly stored: string }>;

/** Decrypts the stored texts of one run, and joins them with their pieces. */
export class RunTexts {
  readonly runId: string;
  readonly #encryption: Encryption;

  constructor(encryption: Encryption, runId: string) {
    this.#encryption = encryption;
    this.runId = runId;
  }

  /** A decrypted text that still names its pieces. @throws {KEY_MISMATCH} @throws {CHECKPOINT_CORRUPT} */
  open(stored: string, part: string): string {
    // Earlier layouts repeated the names of pieces after an encrypted text.
    const [text = ''] = isEncrypted(stored) ? stored.split(MARK, 1) : [stored];
    return this.#encryption.open(text, this.runId, part);
  }

  /** A text with all the pieces that it names. @throws the errors of `open` */
  whole(stored: string, part: string, pieces: StoredPieces): string {
    return this.#whole(this.open(stored, part), pieces, MAX_DEPTH);
  }

  #whole(text: string, pieces: StoredPieces, depth: number): string {
    if (depth === 0) throw new CheckpointCorruptError('this record is damaged: its pieces name each other');
    return joinPieces(text, (name) => {
      const piece = pieces.get(name);
      return piece && this.#whole(this.open(piece.stored, partOf(name)), pieces, depth - 1);
    });
  }
}
