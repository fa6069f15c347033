/** How many runs a store has, by what becomes of them, at one moment. A run that cannot be read is in none of the counts. */
export interface RunCounts {
  /** The store's wall clock, ms. */
  readonly now: number;
  /** Runs that a process works on. */
  readonly live: number;
  /** Runs that are due, and that no process works on. */
  readonly due: number;
  /** Since when the oldest of the due runs is due, wall clock, ms; absent = none is due. */
  readonly dueSince?: number;
  /** Runs that wait, by the kind of their first open wait; `other`: the store does not know it. */
  readonly waiting: { readonly [kind: string]: number };
  /** Runs that are parked: only a person moves them. */
  readonly parked: number;
}

/** How many runs a store has. The figures are those of all processes that share it. */
export interface RunStats {
  /** Runs that a process works on. */
  readonly live: number;
  /** Runs that are due, and that no process works on. */
  readonly due: number;
  /** For how long the oldest of them has been due, ms; 0 = none is due. */
  readonly dueAgeMs: number;
  /** Runs that wait, by the kind of their first open wait; `other`: the store does not know it. */
  readonly waiting: { readonly [kind: string]: number };
  /** Runs that are parked: only a person moves them. */
  readonly parked: number;
}

/** Returns the counts of a store with the age of its oldest due run. */
export function statsIn({ now, live, due, dueSince = now, waiting, parked }: RunCounts): RunStats {
  return { live, due, dueAgeMs: Math.max(0, Math.floor(now - dueSince)), waiting, parked };
}
