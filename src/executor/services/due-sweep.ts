import type { DueRun, DueStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { Warn } from '../host/guard.ts';

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  readonly random: () => number;
  /** How often to look, ms. */
  readonly everyMs: number;
  /** Takes a run up, and notes what became of it. Never rejects. */
  readonly takeUp: (run: DueRun) => Promise<void>;
}

/** A run that got no further is left alone for this time, doubled each time up to the longest, ms. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
/** Most runs that are remembered as stuck. */
const MAX_STUCK = 10_000;
const PAGE = 100;

/** What became of a due run. `stuck`: it got no further, and is left alone for a while. */
export type TakenUp = 'further' | 'stuck';

/** A run that got no further, when it was due at that time. */
interface Stuck {
  readonly dueAt: number;
  /** Monotonic ms. */
  readonly until: number;
  readonly pauseMs: number;
}

/**
 * Looks for runs that are due, and takes them up: one timer for all runs, which keeps no process alive. It begins after
 * the executor's first `recover`, or when a run that it started rests.
 */
export class DueSweep {
  readonly #store: DueStore | undefined;
  readonly #around: Surroundings;
  readonly #stuck = new Map<string, Stuck>();
  #timer: unknown;
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #hasBegun = false;
  #isOver = false;
  #isFailing = false;
  readonly #end = Promise.withResolvers<void>();
  /** The calls that keep the process alive. */
  #followers = 0;

  constructor(store: DueStore | undefined, around: Surroundings) {
    this.#store = store;
    this.#around = around;
  }

  /** Whether this executor takes due runs up. */
  get isOn(): boolean {
    return this.#store !== undefined && this.#hasBegun && !this.#isOver;
  }

  /** Looks from now on. A second call changes nothing. */
  begin(): void {
    if (!this.#store || this.#hasBegun) return;
    this.#hasBegun = true;
    this.#arm();
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
    if (!this.#looking) return this.#lookOnce();
    this.#next ??= this.#looking.then(() => {
      this.#next = undefined;
      return this.#lookOnce();
    });
    return this.#next;
  }

  /** Forgets that a run got no further: an answer has come for it. */
  retry(runId: string): void {
    this.#stuck.delete(runId);
  }

  /** Notes what became of a run that was taken up. @returns how long it is left alone, ms */
  note({ runId, dueAt }: Pick<DueRun, 'runId' | 'dueAt'>, what: TakenUp): number {
    const before = this.#stuck.get(runId);
    this.#stuck.delete(runId);
    if (what === 'further') return 0;
    const pauseMs = before ? Math.min(LONGEST_PAUSE_MS, before.pauseMs * 2) : FIRST_PAUSE_MS;
    this.#stuck.set(runId, { dueAt, until: this.#around.clock.monotonic() + pauseMs, pauseMs });
    const oldest = this.#stuck.keys().next().value;
    if (this.#stuck.size > MAX_STUCK && oldest !== undefined) this.#stuck.delete(oldest);
    return pauseMs;
  }

  /** Sets the one timer. */
  #arm(): void {
    const { clock, everyMs, random } = this.#around;
    clock.clearTimeout(this.#timer);
    if (this.#isOver || !this.#hasBegun) return;
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
    const store = this.#store;
    if (!store || this.#isOver) return;
    const seen = new Set<string>();
    try {
      for (let after: DueRun | undefined; !this.#isOver; ) {
        const { runs } = await store.listDue({ limit: PAGE, ...(after ? { after } : {}) });
        // A host's own store may return the same page each time.
        const news = runs.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
        await this.#takeUp(news);
        after = runs.at(-1);
        if (runs.length < PAGE || news.length === 0) break;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#around.warn('sweep: the due runs cannot be read', { error: toErrorData(error) });
      this.#isFailing = true;
    }
  }

  /** Hosts read the same page: with a random order they meet less often. */
  async #takeUp(runs: readonly DueRun[]): Promise<void> {
    const { random, takeUp } = this.#around;
    const ready = runs.filter((run) => this.#isReady(run));
    for (let i = ready.length - 1; i > 0; i--) {
      const j = Math.min(i, Math.floor(random() * (i + 1)));
      [ready[i], ready[j]] = [ready[j] as DueRun, ready[i] as DueRun];
    }
    for (const run of ready) {
      if (this.#isOver) return;
      await takeUp(run);
    }
  }

  /** A run that is due for another reason than before is taken up at once: a command has come, or its process is gone. */
  #isReady({ runId, dueAt }: DueRun): boolean {
    const stuck = this.#stuck.get(runId);
    return !stuck || stuck.dueAt !== dueAt || stuck.until <= this.#around.clock.monotonic();
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
