interface Waiting {
  readonly size: number;
  admit(): void;
}

/** A lane for so many at once. Who enters says how many that are: sweeps of one executor share it, each with a bound of its own. */
export class Lane {
  #taken = 0;
  readonly #waiting = new Set<Waiting>();

  /** Waits until fewer than `size` are in the lane. @returns false when the signal is aborted first: then there is no place to leave */
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
