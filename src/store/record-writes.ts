import { RECORD_VERSION, type RunCheckpoint, type RunHead } from '../record/checkpoint.ts';
import { type RunDelta, startOf } from '../record/delta.ts';
import { headFieldsOf, journalOfState, type RunCheckpointState, sizeBound, transcriptOf } from '../record/state.ts';
import type { JournalWrite } from '../run/journal/entry.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import type { Transcript } from '../run/transcript.ts';
import type { Clock } from '../values/clock.ts';
import { hasCode } from '../values/error-data.ts';
import { RecordTooLargeError } from '../values/errors.ts';
import { sizeOfMessage } from '../values/message.ts';

/** The known stored state of a run. */
export interface LandedState {
  readonly revision: number;
  /** How long the run's transcript was, with the earlier turns of its thread. */
  readonly messages: number;
  /** Those messages in the transcript of the resumed run. Absent = the first write begins with them, if it is as long. */
  readonly origin?: Transcript | undefined;
  /** The run continues with other messages: its first write is a whole record. */
  readonly isReplaced?: boolean;
}

interface WritesOptions {
  readonly clock: Clock;
  /** For a host's own state without any. */
  readonly attempts: number;
  readonly maxRecordBytes: number;
  /** Whether the store takes deltas. */
  readonly isAppending: boolean;
  /** The stored state: a resumed run continues with deltas instead of writing its whole record again. */
  readonly landed?: LandedState | undefined;
}

/** One write to the store of a run, and what the store has after it. */
export type RecordWrite = (
  | { readonly delta: RunDelta; readonly record?: undefined }
  | { readonly record: RunCheckpoint; readonly delta?: undefined }
) & {
  readonly events: JournalWrite | undefined;
  readonly revision: number;
  /** How long the run's transcript is then. */
  readonly messages: number;
};

/**
 * Decides which writes bring the record of one run to a state: only new messages if the store appends, else the whole record. It waits for
 * nothing; one write is under way at a time.
 *
 * A failed write may have been stored all the same. Its delta is kept and sent again, byte for byte, before anything newer:
 * the revision tells the store whether it has it already. An unclear answer never loses or doubles data.
 */
export class RecordWrites {
  readonly #meta: RunCheckpointMeta;
  readonly #options: WritesOptions;
  #landed: LandedState | undefined;
  /** Whether the store certainly has the state of `#landed`: only then a delta is enough. */
  #canAppend: boolean;
  /** The last stored state is a view of this transcript. */
  #origin: Transcript | undefined;
  /** A delta whose answer is not known, with its events. */
  #unclear: RecordWrite | undefined;
  /** Bytes of the run's start data. */
  #startSize: number | undefined;
  #metaSize: number | undefined;

  constructor(meta: RunCheckpointMeta, options: WritesOptions) {
    const { landed, isAppending } = options;
    this.#meta = meta;
    this.#options = options;
    this.#landed = landed;
    this.#origin = landed?.origin;
    this.#canAppend = landed !== undefined && !landed.isReplaced && isAppending;
  }

  /** The revision that the store is known to have; undefined before the first write. */
  get revision(): number | undefined {
    return this.#landed?.revision;
  }

  /** Whether an earlier write has to be sent again before a newer state. */
  get isUnclear(): boolean {
    return this.#unclear !== undefined;
  }

  /**
   * Returns the next write on the way to a state: it is the last one, unless `isUnclear`.
   * @throws {RECORD_TOO_LARGE}
   */
  next(state: RunCheckpointState): RecordWrite {
    if (this.#unclear) return this.#unclear;
    const { transcript, ownFrom, isOurs } = transcriptOf(state);
    const messages = transcript.length;
    const revision = (this.#landed?.revision ?? 0) + 1;
    const head = this.#headOf(state, revision);
    this.#checkSize(head, state, { transcript, ownFrom });
    const isDelta = isOurs && this.#canAppend && this.#isContinued(transcript);
    this.#origin = transcript;
    const events = journalOfState(state)?.write();
    if (!isDelta) {
      this.#canAppend = false;
      return {
        record: { ...head, messages: transcript.slice(ownFrom), ...startOf(state) },
        events,
        revision,
        messages,
      };
    }
    const start = Math.max(ownFrom, this.#landed?.messages ?? 0);
    const added = { from: start - ownFrom, messages: transcript.slice(start) };
    this.#unclear = { delta: { runId: this.#meta.runId, revision, ...added, head }, events, revision, messages };
    return this.#unclear;
  }

  /** The store has this write. */
  onLanded({ delta, revision, messages }: RecordWrite): void {
    this.#unclear = undefined;
    this.#landed = { revision, messages };
    if (!delta) this.#canAppend = this.#options.isAppending;
  }

  /**
   * The store has refused this write, or its answer is not known.
   * @returns whether the store lacks what its delta continues: then the next write is the whole record
   */
  failed({ delta }: RecordWrite, error: unknown): boolean {
    if (!delta || !hasCode(error, 'REVISION_GAP')) return false;
    this.#unclear = undefined;
    this.#canAppend = false;
    return true;
  }

  /** Whether the store has the beginning of this transcript. A pipeline begins a new one with each phase. */
  #isContinued(transcript: Transcript): boolean {
    if (this.#origin) return transcript.continues(this.#origin);
    return transcript.length >= (this.#landed?.messages ?? 0);
  }

  #headOf(state: RunCheckpointState, revision: number): RunHead {
    const { clock, attempts } = this.#options;
    const updatedAt = clock.now();
    return { version: RECORD_VERSION, revision, updatedAt, meta: this.#meta, ...headFieldsOf(state, attempts) };
  }

  #checkSize(head: RunHead, state: RunCheckpointState, { transcript, ownFrom }: Own): void {
    const { maxRecordBytes } = this.#options;
    this.#startSize ??= Buffer.byteLength(JSON.stringify(startOf(state)));
    this.#metaSize ??= Buffer.byteLength(JSON.stringify(this.#meta));
    const written = transcript.sizeFrom(ownFrom) + this.#startSize;
    // A unit has up to 3 bytes.
    if (maxRecordBytes - written > this.#metaSize + 3 * sizeBound(state)) return;
    const size = written + Buffer.byteLength(JSON.stringify(head));
    if (size <= maxRecordBytes) return;
    const sizes = transcript.slice(ownFrom).map(sizeOfMessage);
    const largest = Math.max(0, ...sizes);
    throw new RecordTooLargeError(
      `the record of ${this.#meta.runId} would have ${size} bytes, maxRecordBytes is ${maxRecordBytes}; ` +
        `its largest message, number ${sizes.indexOf(largest)}, has ${largest} bytes`,
    );
  }
}

/** The messages that the record of a run holds: those of its transcript from an index on. */
interface Own {
  readonly transcript: Transcript;
  readonly ownFrom: number;
}
