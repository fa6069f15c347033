import type { RunEvent } from '../events/body.ts';

/** One event in the journal of a run. */
export interface JournalEntry {
  /** Its place in the journal. Later entries have higher ones, with gaps. */
  readonly place: number;
  /** `kept` as long as the record; `passing` until the step that it belongs to is recorded. */
  readonly keep: 'kept' | 'passing';
  /** As the journal stores it, it lacks the content that the record holds. */
  readonly event: RunEvent;
  /** The model call that the event belongs to: the `seq` of its `step.started`. */
  readonly attempt?: number | undefined;
  /** Where the record holds the content of the event. */
  readonly content?: ContentPlace | undefined;
  /**
   * Of a `step.snapshot`: the end of the pieces that were announced. Only where they may differ from the record, because
   * each was redacted alone.
   */
  readonly end?: TextPlace | undefined;
}

/** The message of a step in its record. */
export interface ContentPlace {
  /** Of an entry of version 2: its phase. The record had the messages of that phase only as long as it was open. */
  readonly phase?: number | undefined;
  /** The index of the model's message in `messages`. The results of its calls are in the message after it. */
  readonly message: number;
}

/** A place in a model's message. */
export interface TextPlace {
  /** The index of a part. */
  readonly block: number;
  /** UTF-16 units of its text. */
  readonly offset: number;
}

/** What a save adds to the journal of its run. */
export interface JournalWrite {
  readonly entries: readonly JournalEntry[];
  /**
   * Passing entries up to this place are deleted: the save records the step that they belong to. It is the place of the last
   * entry of one `publish`: entries that were published together are deleted together.
   */
  readonly dropTo?: number | undefined;
}

/** No process adds that many entries to the journal of a run. */
const ENTRIES_PER_PROCESS = 2 ** 24;

/**
 * Returns the place after which a process adds its entries. It is after all places of the processes before: a record that one of them
 * saved has a higher `seq`, and of two that continue from the same record, the later one has a higher epoch.
 * @param seq of the record that it continues; 0 = a new run @param epoch of its claim
 */
export function firstPlace(seq: number, epoch: number): number {
  return seq + epoch * ENTRIES_PER_PROCESS;
}
