/** A run that a process cannot continue is left alone for this time, doubled each time up to the longest, ms. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
/** Most runs that are remembered. */
const MAX_STUCK = 10_000;

/** The runs that this process could not continue: how long it leaves each of them alone. */
export class StuckRuns {
  readonly #pauses = new Map<string, number>();

  /** Counts one more try that got no further. @returns how long to wait before the next one, ms */
  pauseOf(runId: string): number {
    const before = this.#pauses.get(runId);
    const pauseMs = before === undefined ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, before * 2);
    this.#pauses.delete(runId);
    this.#pauses.set(runId, pauseMs);
    const oldest = this.#pauses.keys().next().value;
    if (this.#pauses.size > MAX_STUCK && oldest !== undefined) this.#pauses.delete(oldest);
    return pauseMs;
  }

  /** Forgets a run: it got further. */
  forget(runId: string): void {
    this.#pauses.delete(runId);
  }
}
