import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { RunDelta } from '../../record/delta.ts';
import { type EncodedHead, encodeDelta, encodeRecord } from './encode.ts';
import type { Encryption } from './encryption.ts';
import { encryptedRowsOf, type MessageRow, sealStep } from './encryption.ts';
import { type Filed, filedOf, keysOf } from './filed.ts';
import { encryptPieces, type Pieces, Splitter } from './piece-refs.ts';
import { StepSplitter } from './step-texts.ts';
import type { StoredJournal } from './stored-journal.ts';

/** A record, or the new part of one, as texts to be stored. */
export interface StoredBody extends EncodedHead {
  /** The part that is written once, of a whole record only. `extras`: inputs, images and the earlier conversation. */
  readonly start?: { readonly meta: string; readonly extras: string | null };
  /** The index of the first message in `rows`. */
  readonly from: number;
  /** How many messages the record has with this body. */
  readonly messageCount: number;
  readonly rows: readonly MessageRow[];
  /** The large parts that the texts name: none without `blobs`. */
  readonly blobs: Pieces;
  /** What the write adds to the journal of its run. */
  readonly journal?: StoredJournal | undefined;
  /** Under what the run of a whole record is found. */
  readonly filed?: Filed | undefined;
}

export interface BodyOptions {
  readonly encryption: Encryption;
  /** Stores the large parts of heads once, and names them. */
  readonly blobs: boolean;
  /** Stores large open steps beside their heads. */
  readonly steps: boolean;
}

const noBlobs: Pieces = { pieces: [], inHead: [], inMessages: [] };

/**
 * Encodes and encrypts records and deltas as the texts that a store keeps. They are encrypted before a write is queued: a
 * codec may throw.
 */
export class BodyWriter {
  readonly #encryption: Encryption;
  readonly #splitter: Splitter | undefined;
  readonly #steps: StepSplitter | undefined;

  constructor({ encryption, blobs, steps }: BodyOptions) {
    this.#encryption = encryption;
    this.#splitter = blobs ? new Splitter() : undefined;
    this.#steps = steps ? new StepSplitter() : undefined;
  }

  /**
   * The texts that a store keeps of a whole record. @throws the errors of `encodeRecord` and of the codec
   * @param fairKey of a first record: the key under which due runs are taken in turn
   */
  ofRecord(record: RunCheckpoint, fairKey?: string): StoredBody {
    const encoded = encodeRecord(record, this.#steps);
    const cut = this.#splitter?.split(encoded, record, { isContinued: false }) ?? { ...encoded, ...noBlobs };
    const { runId, meta, extras } = cut;
    const encryption = this.#encryption;
    const start = {
      meta: encryption.seal(meta, runId, 'meta'),
      extras: extras === null ? null : encryption.seal(extras, runId, 'extras'),
    };
    return { ...this.#body({ ...cut, from: 0 }), start, filed: filedOf(record.meta, fairKey, this.#encryption) };
  }

  /** The texts that a store keeps of a delta. @throws the errors of `encodeDelta` and of the codec */
  ofDelta(delta: RunDelta): StoredBody {
    const encoded = encodeDelta(delta, this.#steps);
    return this.#body(this.#splitter?.split(encoded, delta.head, { isContinued: true }) ?? { ...encoded, ...noBlobs });
  }

  /** A delta changed nothing, because its revision is stored already. */
  wasThere({ head }: RunDelta): void {
    this.#steps?.forget(head);
  }

  /** The run is deleted. */
  forget(runId: string): void {
    this.#splitter?.forget(runId);
  }

  #body(encoded: EncodedHead & Pieces & { readonly from: number; readonly messages: readonly string[] }): StoredBody {
    const { runId, head, version, revision, updatedAt, attempts, due, definition, pausedBy, from, messages, step } =
      encoded;
    const encryption = this.#encryption;
    return {
      runId,
      head: encryption.seal(head, runId, 'head'),
      version,
      revision,
      updatedAt,
      attempts,
      due,
      definition: definition && (keysOf(definition, 'definition', this.#encryption)?.[0] ?? ''),
      pausedBy,
      from,
      messageCount: from + messages.length,
      rows: encryptedRowsOf({ runId, from, messages }, encryption),
      blobs: this.#blobs(encoded),
      step: sealStep(step, runId, encryption),
    };
  }

  #blobs({ runId, pieces, inHead, inMessages }: EncodedHead & Pieces): Pieces {
    if (pieces.length === 0) return noBlobs;
    return { pieces: encryptPieces(runId, pieces, this.#encryption), inHead, inMessages };
  }
}

/** Counts the characters of the texts in a stored body. */
export function charsOf({ head, start, rows, blobs, step, journal }: StoredBody): number {
  let chars = head.length + (start ? start.meta.length + (start.extras?.length ?? 0) : 0);
  for (const { text } of rows) chars += text.length;
  for (const { text } of blobs.pieces) chars += text.length;
  for (const { text } of step?.texts ?? []) chars += text.length;
  for (const { text } of journal?.rows ?? []) chars += text.length;
  return chars;
}
