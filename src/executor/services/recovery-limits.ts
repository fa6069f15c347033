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

/** How many children of one tree begin at once, for any `toolConcurrency` of its agents. */
const BEGIN_AT_ONCE = 8;

/** How a start was answered. */
interface Started {
  readonly accepted: string;
}

/**
 * The runs of one tree that this process works on: how many runs the tree has had below its root, and how its children begin.
 * All of them share it. Each save of each of them stores the number, and a run that continues brings the one of its record.
 */
export class LiveTree {
  #runs: number;
  #beginning = 0;
  readonly #places = new Semaphore();

  constructor(runs = 0) {
    this.#runs = runs;
  }

  /** How many runs have begun below the root, as far as it is known here. */
  get runs(): number {
    return this.#runs;
  }

  /** Takes over a number from another part of the tree. The higher one counts: then no run is counted twice. */
  learn(runs: number): void {
    this.#runs = Math.max(this.#runs, runs);
  }

  /**
   * Begins or continues a child, a few at a time. Only one that had not begun before is counted.
   * @param limit.most the most runs of the tree; absent for a child that may have begun already
   * @throws {Error} for the model of the parent, if the tree is full
   */
  async begin<T extends Started>(
    start: () => Promise<T>,
    { signal, most = Number.POSITIVE_INFINITY }: { readonly signal: AbortSignal; readonly most?: number | undefined },
  ): Promise<T> {
    if (!(await this.#places.enter(BEGIN_AT_ONCE, signal))) throw signal.reason;
    this.#beginning += 1;
    try {
      if (this.#runs + this.#beginning > most)
        throw new Error(`a tree of runs may have ${most} agents at work in all (maxTreeRuns): this one is not started`);
      const started = await start();
      if (started.accepted === 'started') this.#runs += 1;
      return started;
    } finally {
      this.#beginning -= 1;
      this.#places.leave();
    }
  }
}
