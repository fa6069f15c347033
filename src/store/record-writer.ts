import { RECORD_VERSION, type RunHead } from '../record/checkpoint.ts';
import { type RunDelta, startOf } from '../record/delta.ts';
import {
  headFieldsOf,
  type JournalPart,
  journalOf,
  type RunCheckpointState,
  sizeBound,
  transcriptOf,
} from '../record/state.ts';
import type { JournalWrite } from '../run/journal/entry.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import type { Transcript } from '../run/transcript.ts';
import type { Clock } from '../values/clock.ts';
import { withDeadline } from '../values/deadline.ts';
import { hasCode } from '../values/error-data.ts';
import { RecordTooLargeError } from '../values/errors.ts';
import { encodeMessage } from '../values/message.ts';
import { isAppending, isKeepingRecords } from './capabilities.ts';
import { checkedStore } from './checked-store.ts';
import type { CheckpointStore, Claim, Ended, EndOptions, WriteOptions } from './port.ts';

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

interface WriterOptions {
  readonly clock: Clock;
  readonly claim?: Claim | undefined;
  readonly maxRecordBytes: number;
  /** Deadline of one store call, ms. */
  readonly timeoutMs: number;
  /** The stored state: a resumed run continues with deltas instead of writing its whole record again. */
  readonly landed?: LandedState | undefined;
  /** Goes with each whole record; absent = the store keeps what it has. */
  readonly fairKey?: string | undefined;
}

/** A delta that was sent, with its events: it is repeated as it was. */
interface SentDelta {
  readonly delta: RunDelta;
  readonly events: JournalWrite | undefined;
}

interface WholeState {
  readonly state: RunCheckpointState;
  readonly head: RunHead;
  readonly transcript: Transcript;
}

/**
 * Writes one run's states to its store, one at a time: only new messages if the store appends, else the whole record.
 *
 * A failed write may have been stored all the same. Its delta is kept and sent again, byte for byte, before anything newer:
 * the revision tells the store whether it has it already. An unclear answer never loses or doubles data.
 */
export class RecordWriter {
  readonly #store: CheckpointStore;
  readonly #meta: RunCheckpointMeta;
  readonly #options: WriterOptions;
  #landed: LandedState | undefined;
  /** Whether the store certainly has the state of `#landed`: only then a delta is enough. */
  #canAppend: boolean;
  /** The last stored state is a view of this transcript. */
  #origin: Transcript | undefined;
  #unclear: SentDelta | undefined;
  /** The first message of the transcript that the record holds. */
  #ownFrom = 0;
  /** Bytes of the run's start data. */
  #startSize: number | undefined;
  #metaSize: number | undefined;

  constructor(store: CheckpointStore, meta: RunCheckpointMeta, options: WriterOptions) {
    this.#store = checkedStore(store);
    this.#meta = meta;
    this.#options = options;
    this.#landed = options.landed;
    this.#origin = options.landed?.origin;
    this.#canAppend = options.landed !== undefined && !options.landed.isReplaced && isAppending(store);
  }

  /** The revision that the store is known to have; undefined before the first write. */
  get revision(): number | undefined {
    return this.#landed?.revision;
  }

  write(state: RunCheckpointState): Promise<void> {
    const journal = journalOf(state);
    const written = this.#writeState(state, journal);
    return journal ? written.then(() => journal.landed()) : written;
  }

  async #writeState(state: RunCheckpointState, journal: JournalPart | undefined): Promise<void> {
    const { transcript, ownFrom, isOurs } = transcriptOf(state);
    this.#ownFrom = ownFrom;
    if (this.#unclear) await this.#sendAgain(this.#unclear);
    const revision = (this.#landed?.revision ?? 0) + 1;
    const head = this.#headOf(state, revision);
    this.#checkSize(head, transcript, state);
    const whole = { state, head, transcript };
    if (!isOurs || !this.#canAppend || !this.#isContinued(transcript)) return this.#saveWhole(whole, journal);
    this.#origin = transcript;
    const start = Math.max(ownFrom, this.#landed?.messages ?? 0);
    const messages = transcript.slice(start);
    const delta: RunDelta = { runId: this.#meta.runId, revision, from: start - ownFrom, messages, head };
    try {
      await this.#send({ delta, events: journal?.write() });
    } catch (error) {
      if (!hasCode(error, 'REVISION_GAP')) throw error;
      await this.#saveWhole(whole, journal);
    }
  }

  /** Whether the store has the beginning of this transcript. A pipeline begins a new one with each phase. */
  #isContinued(transcript: Transcript): boolean {
    if (this.#origin) return transcript.continues(this.#origin);
    return transcript.length >= (this.#landed?.messages ?? 0);
  }

  /** Ends the run and keeps its record; undefined if the store keeps none. */
  get end(): ((options: EndOptions) => Promise<Ended>) | undefined {
    const store = this.#store;
    const { claim } = this.#options;
    if (!claim || !isKeepingRecords(store)) return undefined;
    return (options) => this.#bounded('store.end', store.end(claim, options));
  }

  async delete(): Promise<void> {
    await this.#bounded('store.delete', this.#store.delete(this.#meta.runId, this.#writeOptions()));
  }

  /** A gap here means that the store lost its state: then the whole record is written instead of a delta. */
  async #sendAgain(sent: SentDelta): Promise<void> {
    try {
      await this.#send(sent);
    } catch (error) {
      if (!hasCode(error, 'REVISION_GAP')) throw error;
      this.#canAppend = false;
    }
  }

  async #send(sent: SentDelta): Promise<void> {
    if (!isAppending(this.#store)) return;
    this.#unclear = sent;
    const { delta, events } = sent;
    try {
      await this.#bounded('store.append', this.#store.append(delta, this.#writeOptions(events)));
    } catch (error) {
      if (hasCode(error, 'REVISION_GAP')) this.#unclear = undefined;
      throw error;
    }
    this.#unclear = undefined;
    this.#landed = { revision: delta.revision, messages: this.#ownFrom + delta.from + delta.messages.length };
  }

  async #saveWhole({ state, head, transcript }: WholeState, journal: JournalPart | undefined): Promise<void> {
    const record = { ...head, messages: transcript.slice(this.#ownFrom), ...startOf(state) };
    this.#canAppend = false;
    const { fairKey } = this.#options;
    const options = { ...this.#writeOptions(journal?.write()), ...(fairKey === undefined ? {} : { fairKey }) };
    await this.#bounded('store.save', this.#store.save(record, options));
    this.#canAppend = isAppending(this.#store);
    this.#origin = transcript;
    this.#unclear = undefined;
    this.#landed = { revision: head.revision, messages: transcript.length };
  }

  #headOf(state: RunCheckpointState, revision: number): RunHead {
    return {
      version: RECORD_VERSION,
      revision,
      updatedAt: this.#options.clock.now(),
      meta: this.#meta,
      ...headFieldsOf(state, this.#options.claim?.attempts ?? 0),
    };
  }

  #checkSize(head: RunHead, transcript: Transcript, state: RunCheckpointState): void {
    const { maxRecordBytes } = this.#options;
    this.#startSize ??= Buffer.byteLength(JSON.stringify(startOf(state)));
    this.#metaSize ??= Buffer.byteLength(JSON.stringify(this.#meta));
    const written = transcript.sizeFrom(this.#ownFrom) + this.#startSize;
    // A unit has up to 3 bytes.
    if (maxRecordBytes - written > this.#metaSize + 3 * sizeBound(state)) return;
    const size = written + Buffer.byteLength(JSON.stringify(head));
    if (size <= maxRecordBytes) return;
    const sizes = transcript.slice(this.#ownFrom).map((message) => Buffer.byteLength(encodeMessage(message)));
    const largest = Math.max(0, ...sizes);
    throw new RecordTooLargeError(
      `the record of ${this.#meta.runId} would have ${size} bytes, maxRecordBytes is ${maxRecordBytes}; ` +
        `its largest message, number ${sizes.indexOf(largest)}, has ${largest} bytes`,
    );
  }

  #writeOptions(events?: JournalWrite): WriteOptions {
    const { claim } = this.#options;
    return { ...(claim ? { claim } : {}), ...(events ? { events } : {}) };
  }

  #bounded<T>(what: string, answer: Promise<T>): Promise<T> {
    return withDeadline(answer, { ms: this.#options.timeoutMs, clock: this.#options.clock, what });
  }
}
