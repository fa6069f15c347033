import type { Codec } from '../../codec/port.ts';
import { CheckpointCorruptError, KeyMismatchError, PawlError } from '../../values/errors.ts';

/** What a sealed text begins with. No JSON text does. */
const MARK = 'sealed:';

/** Whether a stored text went through a codec. */
export const isSealed = (stored: string): boolean => stored.startsWith(MARK);

/** A text that is not JSON must still be one word of a line, of a column, of anything. */
const isWord = (text: unknown): text is string => typeof text === 'string' && /^[!-~]*$/.test(text);

/** The way of a store's texts to the disk and back: through the host's codec, or as they are where there is none. */
export class Sealing {
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
    const sealed = this.#codec.seal(text, { runId, part });
    if (!isWord(sealed)) throw new TypeError('codec.seal must give printable ASCII without spaces');
    return MARK + sealed;
  }

  /**
   * @throws {KeyMismatchError} when it takes a codec, or a key, that is not there
   * @throws {CheckpointCorruptError} when it is not what was sealed
   */
  open(stored: string, runId: string, part: string): string {
    const codec = this.#codec;
    if (!isSealed(stored)) {
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
