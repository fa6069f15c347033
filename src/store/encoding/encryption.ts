import type { Codec } from '../../codec/port.ts';
import { CheckpointCorruptError, KeyMismatchError, PawlError } from '../../values/errors.ts';
import type { EncodedDelta, EncodedHead, EncodedRecord } from './encode.ts';
import type { StepTexts } from './step-texts.ts';

/** What an encrypted text begins with. No JSON text does. */
const MARK = 'sealed:';

/** Whether a stored text went through a codec. */
export const isEncrypted = (stored: string): boolean => stored.startsWith(MARK);

/** A text that is not JSON must still be one word of a line, of a column, of anything. */
const isWord = (text: unknown): text is string => typeof text === 'string' && /^[!-~]*$/.test(text);

/** The way of a store's texts to the disk and back: through the host's codec, or as they are where there is none. */
export class Encryption {
  readonly #codec: Codec | undefined;

  /** @throws {TypeError} when it is no codec: whoever gives one means to be protected */
  constructor(codec: Codec | undefined) {
    const isCodec = typeof codec?.seal === 'function' && typeof codec.open === 'function';
    if (codec && !isCodec) throw new TypeError('codec must have the functions seal and open: `encrypt` makes one');
    this.#codec = codec;
  }

  /** @throws what the codec throws; TypeError when what it gives cannot be stored */
  seal(text: string, runId: string, part: string): string {
    if (!this.#codec) return text;
    const encrypted = this.#codec.seal(text, { runId, part });
    if (!isWord(encrypted)) throw new TypeError('codec.seal must give printable ASCII without spaces');
    return MARK + encrypted;
  }

  /**
   * @throws {KeyMismatchError} when it takes a codec, or a key, that is not there
   * @throws {CheckpointCorruptError} when it is not what was encrypted
   */
  open(stored: string, runId: string, part: string): string {
    const codec = this.#codec;
    if (!isEncrypted(stored)) {
      if (!codec || codec.plain === 'read') return stored;
      throw new KeyMismatchError(
        `the ${part} of run ${runId} is not encrypted, and this store's codec takes nothing else: plain: 'read' makes it`,
      );
    }
    if (!codec) {
      throw new KeyMismatchError(`the ${part} of run ${runId} is encrypted: give the store the codec that wrote it`);
    }
    try {
      const text: unknown = codec.open(stored.slice(MARK.length), { runId, part });
      if (typeof text === 'string') return text;
    } catch (cause) {
      if (cause instanceof PawlError) throw cause;
      throw new CheckpointCorruptError(`the codec cannot open the ${part} of run ${runId}`, { cause });
    }
    throw new CheckpointCorruptError(`the codec opens the ${part} of run ${runId} to something that is no text`);
  }
}

/*
 * Texts are encrypted before a write is queued: a codec may throw, and a transaction that others share must not be half
 * written then. Messages are encrypted by the row, because each seal costs some bytes.
 */

/** Messages that are stored as one text. */
export interface MessageRow {
  /** The index of its first message. */
  readonly first: number;
  readonly count: number;
  /** A JSON array, or what the codec made of it. */
  readonly text: string;
}

export interface MessageRows {
  readonly messageCount: number;
  readonly rows: readonly MessageRow[];
}

/** A long history is split over rows of about this many characters, so that loading can pause between them. */
const MAX_ROW_CHARS = 2 ** 18;

/** The part that a text of an open step is. */
export const stepText = (place: number): string => `step ${place}`;

/** The part that a row of messages is. */
export const messagesFrom = (first: number): string => `messages ${first}`;

export function encryptRecord(
  record: EncodedRecord,
  encryption: Pick<Encryption, 'seal'>,
): EncodedRecord & MessageRows {
  const { runId, meta, head, extras, messages, step } = record;
  return {
    ...record,
    meta: encryption.seal(meta, runId, 'meta'),
    extras: extras === null ? null : encryption.seal(extras, runId, 'extras'),
    head: encryption.seal(head, runId, 'head'),
    step: sealStep(step, runId, encryption),
    messageCount: messages.length,
    rows: rowsOf({ ...record, from: 0 }, encryption),
  };
}

/** A delta as it is stored. Its messages stand in rows, and nowhere else: of a thousand that wait, each byte counts. */
export interface EncryptedDelta extends EncodedHead, MessageRows {
  readonly from: number;
}

export function encryptDelta(delta: EncodedDelta, encryption: Pick<Encryption, 'seal'>): EncryptedDelta {
  const { runId, head, version, revision, updatedAt, attempts, from, messages, step } = delta;
  return {
    runId,
    head: encryption.seal(head, runId, 'head'),
    version,
    revision,
    updatedAt,
    attempts,
    step: sealStep(step, runId, encryption),
    from,
    messageCount: from + messages.length,
    rows: rowsOf(delta, encryption),
  };
}

export function sealStep(
  step: StepTexts | undefined,
  runId: string,
  encryption: Pick<Encryption, 'seal'>,
): StepTexts | undefined {
  if (!step) return undefined;
  const texts = step.texts.map(({ place, text }) => ({ place, text: encryption.seal(text, runId, stepText(place)) }));
  return { ...step, texts };
}

/** A long history is split, so that loading can pause between its rows. */
export function rowsOf(
  { runId, from, messages }: Pick<EncodedDelta, 'runId' | 'from' | 'messages'>,
  encryption: Pick<Encryption, 'seal'>,
): MessageRow[] {
  const rows: MessageRow[] = [];
  for (let start = 0; start < messages.length; ) {
    let end = start;
    // Put together, not joined: that would copy the messages once more than the store does.
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
