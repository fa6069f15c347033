/** Stored in place of a time: only a command wakes the run. It is finite, so that JSON and every database can hold it. */
export const ON_COMMAND: number = Number.MAX_SAFE_INTEGER;

/**
 * When a stored run is due, wall clock, ms: 0 = as soon as no process owns it; `ON_COMMAND`; null = never, because it is parked
 * or belongs to a host's machine.
 */
export type Due = number | null;

/**
 * Converts the time at which a run that leaves is due to the number that stores keep.
 * @throws {TypeError} for a value that is no time
 */
export function toDue(dueAt: number | undefined): number {
  if (dueAt === undefined) return ON_COMMAND;
  if (typeof dueAt !== 'number' || Number.isNaN(dueAt)) {
    throw new TypeError(`dueAt must be a time in ms, or absent, not ${String(dueAt)}`);
  }
  return Math.min(Math.max(Math.ceil(dueAt), 0), ON_COMMAND);
}

/**
 * Converts the stored due time of a run to the one that lists show: undefined = it is due now, or only a command wakes it,
 * or never.
 */
export function shownDue(due: Due | undefined): number | undefined {
  return due && due < ON_COMMAND ? due : undefined;
}

/** Returns whether a run rests: it is due later, or only by a command. @param now the store's wall clock, ms */
export function isResting(due: Due | undefined, now: number): boolean {
  return typeof due === 'number' && due > now;
}
