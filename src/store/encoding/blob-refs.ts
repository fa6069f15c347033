import type { RunHead } from '../../record/checkpoint.ts';
import type { OpenStep } from '../../run/open-step.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { encodeMessage } from '../../values/message.ts';
import type { EncodedDelta, EncodedHead, EncodedRecord } from './encode.ts';
import { type Encryption, encryptDelta, encryptRecord, isEncrypted, type MessageRows } from './encryption.ts';

/*
 * What a run says is stored once. As long as a step is open, the model's message and the results so far stand in the head,
 * and the head is written with each save; when the step closes they become messages. A store that writes heads as they
 * are pays for a result as often as there are results in its step, and once more at the end. So the large parts of a head
 * are stored beside it, once, under names, and texts name them: `<mark><name><mark>` in the place of the part's JSON. That is
 * done with texts alone, so that whatever is put together again is what was there before.
 */

/** Between the marks stands a name. JSON has no such character: in strings it is escaped. */
const MARK = '\u001a';

/** Between pieces that are one text: as little JSON as the mark. */
const BETWEEN = '\u001e';

/** Not imported: every import of the package would load streams with it. */
const zlib = () => process.getBuiltinModule('node:zlib');

/** Shorter parts stay where they are. */
const MIN_CHARS = 128;

/** The ledger of a step with more calls is stored in groups of so many. */
const LINES_PER_PIECE = 32;

/** More runs than this are not known at once; the parts of a further one are stored once more. */
const MAX_RUNS = 10_000;

/** A part of a record that is stored once. Its text may name parts that come before it. */
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

/** A piece, and the text that it stands for. */
interface Part extends Piece {
  readonly whole: string;
  /** The parts that its text names. */
  readonly inner: readonly Part[];
}

const none: ReadonlyMap<string, Part> = new Map();

/** Splits what is to be stored into pieces. It remembers those of each run's last head, because they are about to become messages. */
export class Splitter {
  readonly #parts = new Map<string, ReadonlyMap<string, Part>>();

  /** @param messages whether they go on from the head before: those of a whole record do not */
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
    const parts = [...before.values()];
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

  /** The run is gone, or somebody else's. */
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

/** Names the parts of one head; those of the head before keep their names. */
class Naming {
  /** By the whole text, in the order in which they stand in heads and messages. */
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

  /** The inputs of the calls stand in the message, and once more in the ledger. A line of it changes twice, when there are many. */
  step({ message, calls }: OpenStep): Part[] {
    const inputs = calls.map(({ input }) => this.texts([JSON.stringify(input)]));
    const said = this.texts([encodeMessage(message)], inputs.flat());
    const content = calls.map((call, i) => {
      const result = call.result ? this.texts([JSON.stringify(call.result)]) : [];
      return [...(inputs[i] ?? []), ...result];
    });
    if (calls.length === 1) return [...said, ...content.flat()];
    // The lines of many calls are stored in groups: a head that has each of them would grow with every call that is made.
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

  /** The same for the same save, and another for any other: nobody must find one text where another was named. */
  #name(whole: string): string {
    const [revision, place, sum] = [this.#revision, this.parts.size, zlib().crc32(whole)];
    return `${revision.toString(36)}.${place.toString(36)}.${sum.toString(36)}`;
  }
}

const hasNoParts = ({ openStep, completedPhases, undelivered }: RunHead) =>
  !openStep && completedPhases.length === 0 && (undelivered ?? []).length === 0;
const nameOf = ({ name }: Piece) => name;
const withInner = (part: Part): readonly Part[] => [...part.inner, part];

/** The name of a piece, as texts name it. */
export const mention = (name: string): string => `${MARK}${name}${MARK}`;

/** What stands before the first name. */
export const withoutMentions = (text: string): string => text.split(MARK, 1)[0] ?? '';

/** The pieces that a stored text names. */
export function namesIn(text: string): string[] {
  return isCut(text) ? text.split(MARK).filter((_, i) => i % 2 === 1) : [];
}

/** Puts names in the place of parts, which stand in this order in the text, as far as they stand there: those are `found`. */
function cut(text: string, parts: readonly Part[], found?: Set<Part>): string {
  let from = 0;
  let before = '';
  for (const part of parts) {
    const { whole, name } = part;
    const at = text.indexOf(whole, from);
    if (at === -1) continue;
    found?.add(part);
    before += `${text.slice(from, at)}${mention(name)}`;
    from = at + whole.length;
  }
  return from === 0 ? text : before + text.slice(from);
}

/** Pieces as one text. */
export function bundleOf(pieces: readonly Piece[]): string {
  return pieces.map(({ name, text }) => `${name}${BETWEEN}${text}`).join(BETWEEN);
}

export function piecesIn(bundled: string): Piece[] {
  const parts = bundled.split(BETWEEN);
  return Array.from({ length: parts.length >> 1 }, (_, i) => ({
    name: parts[2 * i] ?? '',
    text: parts[2 * i + 1] ?? '',
  }));
}

/** Whether a stored text names pieces. */
export function isCut(text: string): boolean {
  return text.includes(MARK);
}

/**
 * Puts a stored text together again.
 * @param find the whole text of a piece
 * @throws {CheckpointCorruptError} when one is missing
 */
export function joinPieces(text: string, find: (name: string) => string | undefined): string {
  if (!isCut(text)) return text;
  const parts = text.split(MARK);
  for (let i = 1; i < parts.length; i += 2) {
    const name = parts[i] ?? '';
    const whole = find(name);
    if (whole === undefined) throw new CheckpointCorruptError(`this record is damaged: its piece ${name} is missing`);
    parts[i] = whole;
  }
  return parts.join('');
}

/** A stored text as JSON that says nothing of its pieces. */
export function withoutPieces(text: string): string {
  return joinPieces(text, () => 'null');
}

/*
 * Texts that name pieces, on their way in and out. A text is cut first and encrypted afterwards; the names of its pieces stand
 * behind what was encrypted, so that whoever has no key can still tell which pieces are needed.
 */

/** A piece names others, and those name none. */
const MAX_DEPTH = 4;

const partOf = (name: string) => `piece ${name}`;

export function encryptCutRecord(
  record: EncodedRecord & Pieces,
  encryption: Encryption,
): EncodedRecord & Pieces & MessageRows {
  const { runId, pieces } = record;
  return {
    ...record,
    ...encryptRecord(record, cutEncryption(encryption)),
    pieces: encryptPieces(runId, pieces, encryption),
  };
}

export function encryptCutDelta(
  delta: EncodedDelta & Pieces,
  encryption: Encryption,
): EncodedDelta & Pieces & MessageRows {
  const { runId, pieces } = delta;
  return {
    ...delta,
    ...encryptDelta(delta, cutEncryption(encryption)),
    pieces: encryptPieces(runId, pieces, encryption),
  };
}

export function encryptPieces(runId: string, pieces: readonly Piece[], encryption: Encryption): Piece[] {
  const { seal } = cutEncryption(encryption);
  return pieces.map(({ name, text }) => ({ name, text: seal(text, runId, partOf(name)) }));
}

/** Encrypts a text that names pieces: the names stay readable behind it. */
export function cutEncryption(encryption: Encryption): Pick<Encryption, 'seal'> {
  return {
    seal: (text, runId, part) => {
      const encrypted = encryption.seal(text, runId, part);
      return isEncrypted(encrypted) ? encrypted + namesIn(text).map(mention).join('') : encrypted;
    },
  };
}

export type StoredPieces = ReadonlyMap<string, { readonly stored: string }>;

/** The stored texts of one run, as they were before they were encrypted. */
export class RunTexts {
  readonly runId: string;
  readonly #encryption: Encryption;

  constructor(encryption: Encryption, runId: string) {
    this.#encryption = encryption;
    this.runId = runId;
  }

  /** A text that names its pieces still. @throws {KeyMismatchError} @throws {CheckpointCorruptError} */
  open(stored: string, part: string): string {
    return this.#encryption.open(isEncrypted(stored) ? withoutMentions(stored) : stored, this.runId, part);
  }

  /** A text with all the pieces that it names. @throws what `open` throws */
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

  /** A text as JSON that says nothing of its pieces. @throws what `open` throws */
  withoutPieces(stored: string, part: string): string {
    return withoutPieces(this.open(stored, part));
  }
}
