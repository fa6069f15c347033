interface Waiting {
  readonly size: number;
  admit(): void;
}

/**
 * Admits so many at once. Each call of `enter` says how many: sweeps of one executor share it, each with a bound of its own.
 * @example
 * if (await semaphore.enter(64, signal)) work().finally(() => semaphore.leave())
 */
export class Semaphore {
  #taken = 0;
  readonly #waiting = new Set<Waiting>();

  /** Waits until fewer than `size` are admitted. @returns false if the signal is aborted first; do not call `leave` then */
  enter(size: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted) return Promise.resolve(false);
    if (this.#taken < size) {
      this.#taken += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const end = (isAdmitted: boolean) => {
        this.#waiting.delete(waiting);
        signal?.removeEventListener('abort', giveUp);
        resolve(isAdmitted);
      };
      const giveUp = () => end(false);
      const waiting: Waiting = { size, admit: () => end(true) };
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', giveUp);
    });
  }

  leave(): void {
    this.#taken -= 1;
    for (const next of this.#waiting) {
      if (this.#taken >= next.size) continue;
      this.#taken += 1;
      next.admit();
    }
  }
}

/** What the sweeps of one executor share. */
export class Recovery {
  /** How many recovered runs are live. */
  readonly places: Semaphore = new Semaphore();
  /** For one suspect at a time: a run that may be what kills the process. */
  readonly alone: Semaphore = new Semaphore();
  /** The ids of runs that a sweep takes up just now: another sweep leaves them to it. */
  readonly begun: Set<string> = new Set();

  /**
   * Waits for one of so many places.
   * @returns whether the caller has one: not when the sweep is over meanwhile
   */
  async place(
    { concurrency, signal }: { readonly concurrency: number; readonly signal: AbortSignal | undefined },
    isOver: () => boolean,
  ): Promise<boolean> {
    if (isOver() || !(await this.places.enter(concurrency, signal))) return false;
    if (!isOver()) return true;
    this.places.leave();
    return false;
  }
}
