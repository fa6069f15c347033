/** Stored in place of a time: only a command wakes the run. It is finite, so that JSON and every database can hold it. */
export const ON_COMMAND: number = Number.MAX_SAFE_INTEGER;

/**
 * When a stored run is due, wall clock, ms: 0 = as soon as no process owns it; `ON_COMMAND`; null = never, because it is parked
 * or belongs to a host's machine. A time with half a ms is the pause of a run that a process has given back: it does not rest.
 */
export type Due = number | null;

/**
 * Converts the time at which a run that leaves is due to the number that stores keep.
 * @param isGivenBack it does not rest: a process could not continue it
 * @throws {TypeError} for a value that is no time
 */
export function toDue(dueAt: number | undefined, isGivenBack = false): number {
  if (dueAt === undefined) return ON_COMMAND;
  if (typeof dueAt !== 'number' || Number.isNaN(dueAt)) {
    throw new TypeError(`dueAt must be a time in ms, or absent, not ${String(dueAt)}`);
  }
  const due = Math.min(Math.max(Math.ceil(dueAt), 0), ON_COMMAND);
  return isGivenBack && due > 0 && due < ON_COMMAND ? due - 0.5 : due;
}

/** Returns whether a process has given the run back since it was due. */
function isGivenBack(due: Due | undefined): boolean {
  return typeof due === 'number' && !Number.isInteger(due);
}

/**
 * Converts the stored due time of a run to the one that lists show: undefined = it is due now, or only a command wakes it,
 * or never.
 */
export function shownDue(due: Due | undefined): number | undefined {
  return due && due < ON_COMMAND ? Math.ceil(due) : undefined;
}

/**
 * Returns whether a run rests: it is due later, or only by a command. One that was given back does not.
 * @param now the store's wall clock, ms
 */
export function isResting(due: Due | undefined, now: number): boolean {
  return typeof due === 'number' && due > now && !isGivenBack(due);
}

/**
 * Returns whether a run may be taken, as far as its time says.
 * @param now the store's wall clock, ms
 * @param isNamed the taker names it: then the pause of a run that was given back does not count
 */
export function isTimeToTake(due: Due | undefined, now: number, isNamed: boolean): boolean {
  return typeof due === 'number' && (due <= now || (isNamed && isGivenBack(due)));
}
