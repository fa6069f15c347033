import type { Warn } from '../../../log/log.ts';
import type { DueRun, DueStore } from '../../../store/due-port.ts';
import type { Clock } from '../../../values/clock.ts';
import type { StuckRuns } from './stuck-runs.ts';

/** What a sweep works with. */
export interface SweepParts {
  readonly clock: Clock;
  readonly warn: Warn;
  readonly random: () => number;
  /** The runs that get no further. */
  readonly stuck: StuckRuns;
  /** How often to look, ms. */
  readonly everyMs: number;
  /** Takes runs up, and notes what became of them. Never rejects. */
  readonly takeUp: (runs: readonly DueRun[]) => Promise<void>;
  /** Called before each look. */
  readonly onLook?: () => void;
}

const PAGE = 100;

/**
 * Looks for runs that are due, and takes them up: one timer for all runs, which keeps no process alive. It begins after
 * the executor's first `recover`, or when a run that it started rests.
 */
export class DueSweep {
  readonly #due: DueStore | undefined;
  readonly #around: SweepParts;
  #timer: unknown;
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #hasBegun = false;
  #isOver = false;
  #isFailing = false;
  readonly #end = Promise.withResolvers<void>();
  /** How the workers that take due runs instead of this sweep are woken; undefined = there never was one. */
  #workers: Set<() => void> | undefined;
  /** The calls that keep the process alive. */
  #followers = 0;

  constructor(due: DueStore | undefined, around: SweepParts) {
    this.#due = due;
    this.#around = around;
  }

  /** Whether this executor takes due runs up. */
  get isOn(): boolean {
    return this.#due !== undefined && (this.#hasBegun || this.#workers !== undefined) && !this.#isOver;
  }

  /** Looks from now on. A second call changes nothing. */
  begin(): void {
    if (!this.#due || this.#hasBegun) return;
    this.#hasBegun = true;
    this.#arm();
  }

  /**
   * A worker takes the due runs from now on: this sweep takes none any more, also after the worker's end.
   * @param look wakes the worker @returns ends that
   */
  handOver(look: () => void): () => void {
    this.#workers ??= new Set();
    this.#workers.add(look);
    this.#around.clock.clearTimeout(this.#timer);
    return () => this.#workers?.delete(look);
  }

  /** Keeps the process alive until the end of the sweep, or until the signal is aborted. */
  async follow(signal: AbortSignal | undefined): Promise<void> {
    this.#followers += 1;
    this.#hasBegun = true;
    this.#arm();
    const aborted = Promise.withResolvers<void>();
    const abort = () => aborted.resolve();
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    await Promise.race([this.#end.promise, aborted.promise]);
    signal?.removeEventListener('abort', abort);
    this.#followers -= 1;
    this.#arm();
  }

  end(): void {
    this.#isOver = true;
    this.#around.clock.clearTimeout(this.#timer);
    this.#end.resolve();
  }

  /** Looks now; if a look has begun before, after that one. Never rejects. */
  look(): Promise<void> {
    for (const wake of this.#workers ?? []) wake();
    if (!this.#looking) return this.#lookOnce();
    this.#next ??= this.#looking.then(() => {
      this.#next = undefined;
      return this.#lookOnce();
    });
    return this.#next;
  }

  /** Sets the one timer. */
  #arm(): void {
    const { clock, everyMs, random } = this.#around;
    clock.clearTimeout(this.#timer);
    if (this.#isOver || !this.#hasBegun || (this.#workers && this.#followers === 0)) return;
    // Hosts that boot together look at different times.
    this.#timer = clock.setTimeout(() => void this.look().then(() => this.#arm()), everyMs * (0.75 + random() / 2));
    if (this.#followers === 0) unreferenced(this.#timer);
  }

  #lookOnce(): Promise<void> {
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const due = this.#due;
    if (!due || this.#isOver || this.#workers) return;
    this.#around.onLook?.();
    const seen = new Set<string>();
    try {
      for (let after: DueRun | undefined; !this.#isOver; ) {
        const { runs } = await due.list({ limit: PAGE, ...(after ? { after } : {}) });
        // A host's own store may return the same page each time.
        const news = runs.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
        await this.#takeUp(news);
        after = runs.at(-1);
        if (runs.length < PAGE || news.length === 0) break;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#around.warn('due.read.failed', { error });
      this.#isFailing = true;
    }
  }

  /** Hosts read the same page: in a random order they seldom ask for the same runs. */
  async #takeUp(runs: readonly DueRun[]): Promise<void> {
    const { random, stuck, takeUp } = this.#around;
    const ready = runs.filter((run) => stuck.isReady(run));
    for (let i = ready.length - 1; i > 0; i--) {
      const j = Math.min(i, Math.floor(random() * (i + 1)));
      [ready[i], ready[j]] = [ready[j] as DueRun, ready[i] as DueRun];
    }
    if (!this.#isOver && ready.length > 0) await takeUp(ready);
  }
}

/** The timer may be of a host's clock: it need not have the method, and the method may throw. */
function unreferenced(timer: unknown): void {
  try {
    (timer as { unref?: () => void } | undefined)?.unref?.();
  } catch {
    // The timer then keeps the process alive; `shutdown` clears it.
  }
}
