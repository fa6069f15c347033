interface Waiting {
  readonly size: number;
  admit(): void;
}

/**
 * Limits how many callers work at once; further ones wait. Each call of `enter` gives its limit: the sweeps of one executor
 * share a semaphore, each with its own limit.
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

  /** Enters if there is a place now. @returns whether the caller has one */
  tryEnter(size: number): boolean {
    if (this.#taken >= size) return false;
    this.#taken += 1;
    return true;
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

/**
 * The state that the recovery sweeps of one executor share: the limits of live recovered runs, and which runs are being
 * started.
 */
export class Recovery {
  /** Limits the live recovered runs. */
  readonly places: Semaphore = new Semaphore();
  /** For one suspect at a time: a run that may have crashed its process. */
  readonly alone: Semaphore = new Semaphore();
  /** The ids of runs that a sweep is starting just now: another sweep skips them. */
  readonly begun: Set<string> = new Set();

  /**
   * Waits for one of `size` places.
   * @returns whether the caller has one: false if the sweep ended meanwhile
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
