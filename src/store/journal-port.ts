import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { JournalEntry } from '../run/journal/entry.ts';
import type { Claim } from './port.ts';

export interface ReadEventsOptions {
  /** The `next` of the page before; 0 or absent = from the first entry. */
  readonly after?: number | undefined;
  /** About how many entries: those of one write come together. */
  readonly limit: number;
  /** Begins with the newest writes, about so many, if they come after `after`. A store may ignore it. */
  readonly newest?: number | undefined;
}

/** A page of a run's journal. */
export interface JournalPage {
  /** By their places. Content that only the record holds is filled in; an entry whose content is gone is left out. */
  readonly entries: readonly JournalEntry[];
  /** Where the next page begins. Equal to `after`: there is nothing newer yet. */
  readonly next: number;
}

/** Which part of a record is loaded. */
export interface LoadPartOptions {
  /** The messages from this index on, up to `to` (excluded). None if `to` is not above it. */
  readonly from: number;
  readonly to: number;
  /** Loads the record of a run that ended too. Default `false`. */
  readonly ended?: boolean | undefined;
}

/** A part of a record. It must not be saved. */
export interface RecordPart {
  /** The record without its inputs and images; of its messages it has those that were asked for. */
  readonly record: RunCheckpoint;
  /** How many messages the whole record has. */
  readonly messageCount: number;
}

/** The events of runs, for readers in any process. Those of a run are removed with its record. */
export interface JournalStore {
  /**
   * Adds entries that no save waits for. They need not survive a loss of power. An entry with the place of an earlier one
   * replaces it.
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  publish(
    runId: string,
    entries: readonly JournalEntry[],
    options: { readonly claim: Claim; readonly signal?: AbortSignal | undefined },
  ): Promise<void>;
  /** Reads a page of a run's journal; null if there is no record of the run. @throws {CHECKPOINT_CORRUPT} */
  read(runId: string, options: ReadEventsOptions): Promise<JournalPage | null>;
  /**
   * Loads a part of a record: what that costs does not grow with the whole. Null if there is no record of the run.
   * @throws {CHECKPOINT_CORRUPT}
   */
  loadPart(runId: string, options: LoadPartOptions): Promise<RecordPart | null>;
}
