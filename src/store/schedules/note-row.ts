import type { ScheduleRow, ScheduleWrite, StoreWrite } from '../store-driver.ts';

/** What a driver knows when a schedule is written. */
export interface ScheduleFacts {
  /** The stored row; null = there is none. */
  readonly stored: Pick<ScheduleRow, 'revision' | 'text'> | null;
  /** Whether there is a record of the run, an outcome, or the record of a run that ended. Asked only with a run. */
  readonly isKnown: boolean;
}

/** What becomes of a write of a schedule. */
export interface NotedRow {
  /** False: another write was first. */
  readonly isNoted: boolean;
  /** Whether the row is to be stored: an earlier try of the same write may have stored it. */
  readonly isNew: boolean;
  /** The write of the run, in the same commit. */
  readonly run?: StoreWrite<void> | undefined;
}

/** Decides whether a schedule may be stored: it follows the stored one. Its run begins unless something is known of it. */
export function noteRow({ row, run }: ScheduleWrite, { stored, isKnown }: ScheduleFacts): NotedRow {
  if (stored?.revision === row.revision && stored.text === row.text) return { isNoted: true, isNew: false };
  if ((stored?.revision ?? 0) !== row.revision - 1) return { isNoted: false, isNew: false };
  return { isNoted: true, isNew: true, ...(run && !isKnown ? { run } : {}) };
}
