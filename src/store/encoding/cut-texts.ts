import { CheckpointCorruptError } from '../../values/errors.ts';
import { joinPieces, mention, namesIn, type Piece, type Pieces, withoutMentions, withoutPieces } from './blob-refs.ts';
import type { EncodedDelta, EncodedRecord } from './encode.ts';
import { type MessageRows, sealDelta, sealRecord } from './encryption.ts';
import { isSealed, type Sealing } from './sealing.ts';

/*
 * Texts that name pieces, on their way in and out. A text is cut first and sealed afterwards; the names of its pieces stand
 * behind what was sealed, so that whoever has no key can still tell which pieces are needed.
 */

/** A piece names others, and those name none. */
const MAX_DEPTH = 4;

const partOf = (name: string) => `piece ${name}`;

export function sealCutRecord(record: EncodedRecord & Pieces, sealing: Sealing): EncodedRecord & Pieces & MessageRows {
  const { runId, pieces } = record;
  return { ...record, ...sealRecord(record, cutSealing(sealing)), pieces: sealPieces(runId, pieces, sealing) };
}

export function sealCutDelta(delta: EncodedDelta & Pieces, sealing: Sealing): EncodedDelta & Pieces & MessageRows {
  const { runId, pieces } = delta;
  return { ...delta, ...sealDelta(delta, cutSealing(sealing)), pieces: sealPieces(runId, pieces, sealing) };
}

export function sealPieces(runId: string, pieces: readonly Piece[], sealing: Sealing): Piece[] {
  const { seal } = cutSealing(sealing);
  return pieces.map(({ name, text }) => ({ name, text: seal(text, runId, partOf(name)) }));
}

/** Seals a text that names pieces: the names stay readable behind it. */
export function cutSealing(sealing: Sealing): Pick<Sealing, 'seal'> {
  return {
    seal: (text, runId, part) => {
      const sealed = sealing.seal(text, runId, part);
      return isSealed(sealed) ? sealed + namesIn(text).map(mention).join('') : sealed;
    },
  };
}

export type StoredPieces = ReadonlyMap<string, { readonly stored: string }>;

/** The stored texts of one run, as they were before they were sealed. */
export class RunTexts {
  readonly runId: string;
  readonly #sealing: Sealing;

  constructor(sealing: Sealing, runId: string) {
    this.#sealing = sealing;
    this.runId = runId;
  }

  /** A text that names its pieces still. @throws {KeyMismatchError} @throws {CheckpointCorruptError} */
  open(stored: string, part: string): string {
    return this.#sealing.open(isSealed(stored) ? withoutMentions(stored) : stored, this.runId, part);
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
