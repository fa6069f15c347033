import type { Codec } from '../../codec/port.ts';
import { NO_CODEC, NOT_OPENED, PawlError } from '../../values/error-codes.ts';
import { CheckpointCorruptError, KeyMismatchError } from '../../values/errors.ts';
import type { EncodedDelta } from './encode.ts';
import type { StepTexts } from './step-texts.ts';

/** The prefix of an encrypted text. No JSON text begins with it. */
const MARK = 'sealed:';

/** Returns whether a stored text was encrypted by a codec. */
export const isEncrypted = (stored: string): boolean => stored.startsWith(MARK);

/** A text that is not JSON must still be a single word, for lines and columns. */
const isWord = (text: unknown): text is string => typeof text === 'string' && /^[!-~]*$/.test(text);

/** Encrypts and decrypts a store's texts with the host's codec; without a codec texts stay unchanged. */
export class Encryption {
  readonly #codec: Codec | undefined;

  /** @throws {TypeError} for a value that is not a codec: its host wants encryption */
  constructor(codec: Codec | undefined) {
    const isCodec = typeof codec?.seal === 'function' && typeof codec.open === 'function';
    if (codec && !isCodec) throw new TypeError('codec must have the functions seal and open: `encrypt` makes one');
    this.#codec = codec;
  }

  /**
   * Encrypts a text for the store, when the store has a codec.
   * @throws the codec's error; TypeError if its result cannot be stored
   */
  seal(text: string, runId: string, part: string): string {
    if (!this.#codec) return text;
    const encrypted = this.#codec.seal(text, { runId, part });
    if (!isWord(encrypted)) throw new TypeError('codec.seal must return printable ASCII without spaces');
    return MARK + encrypted;
  }

  /**
   * Returns the texts under which a store finds a value: it keeps the first, and searches for all. Without a codec the only one
   * is the value. Undefined: a host's codec cannot hash, so the store must not keep the value, and cannot search for it.
   * @param what names the kind of the value, for example `caller`
   */
  lookups(value: string, what: string): readonly [string, ...string[]] | undefined {
    if (!this.#codec) return [value];
    const { lookups, plain } = this.#codec;
    if (typeof lookups !== 'function') return undefined;
    const hashes: unknown = lookups.call(this.#codec, value, what);
    if (!Array.isArray(hashes) || hashes.length === 0 || !hashes.every(isWord)) {
      throw new TypeError('codec.lookups must return one or more texts of printable ASCII without spaces');
    }
    const found = hashes.map((hash) => MARK + hash);
    return (plain === 'read' ? [...found, value] : found) as [string, ...string[]];
  }

  /**
   * Decrypts a stored text.
   * @throws {KEY_MISMATCH} if a codec or a key is missing
   * @throws {CHECKPOINT_CORRUPT} if the text is not the encrypted one
   */
  open(stored: string, runId: string, part: string): string {
    const codec = this.#codec;
    if (!isEncrypted(stored)) {
      if (!codec || codec.plain === 'read') return stored;
      throw new KeyMismatchError(
        `the ${part} of run ${runId} is not encrypted, and this store's codec accepts only encrypted texts: set plain: 'read'`,
      );
    }
    if (!codec) {
      throw new KeyMismatchError(`the ${part} of run ${runId} is encrypted: ${NO_CODEC}`);
    }
    try {
      const text: unknown = codec.open(stored.slice(MARK.length), { runId, part });
      if (typeof text === 'string') return text;
    } catch (cause) {
      if (cause instanceof PawlError) throw cause;
      throw new CheckpointCorruptError(`the codec cannot open the ${part} of run ${runId} ${NOT_OPENED}`, { cause });
    }
    throw new CheckpointCorruptError(`the codec returned no text for the ${part} of run ${runId}`);
  }
}

/*
 * Texts are encrypted before a write is queued: a codec may throw, and a shared transaction must not be half written then.
 * Messages are encrypted by the row, because each encryption costs some bytes.
 */

/** Messages that are stored as one text. */
export interface MessageRow {
  /** The index of its first message. */
  readonly first: number;
  readonly count: number;
  /** A JSON array, or the codec's text of it. */
  readonly text: string;
}

/** A long history is split over rows of about this many characters, so that loading can pause between them. */
const MAX_ROW_CHARS = 2 ** 18;

/** Returns the part name under which a text of an open step is encrypted. */
export const stepText = (place: number): string => `step ${place}`;

/** Returns the part name under which a row of messages is encrypted. */
export const messagesFrom = (first: number): string => `messages ${first}`;

/** Encrypts the texts of an open step. */
export function sealStep(
  step: StepTexts | undefined,
  runId: string,
  encryption: Pick<Encryption, 'seal'>,
): StepTexts | undefined {
  if (!step) return undefined;
  const texts = step.texts.map(({ place, text }) => ({ place, text: encryption.seal(text, runId, stepText(place)) }));
  return { ...step, texts };
}

/**
 * Encodes the messages of a record or delta as encrypted rows. A long history is split, so that loading can pause between
 * its rows.
 */
export function encryptedRowsOf(
  { runId, from, messages }: Pick<EncodedDelta, 'runId' | 'from' | 'messages'>,
  encryption: Pick<Encryption, 'seal'>,
): MessageRow[] {
  const rows: MessageRow[] = [];
  for (let start = 0; start < messages.length; ) {
    let end = start;
    // Concatenated, not joined: a join would copy the messages once more than the store does.
    let array = '[';
    for (; end < messages.length && array.length < MAX_ROW_CHARS; end++) {
      array += end > start ? `,${messages[end]}` : messages[end];
    }
    const first = from + start;
    const text = encryption.seal(`${array}]`, runId, messagesFrom(first));
    rows.push({ first, count: end - start, text });
    start = end;
  }
  return rows;
}
