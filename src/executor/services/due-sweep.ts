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
  /** Takes a run up. @returns whether it got further than before */
  readonly takeUp: (run: DueRun) => Promise<boolean>;
}

/** A run that got no further is left alone for this time, doubled each time up to the longest, ms. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
/** Most runs that are remembered as stuck. */
const MAX_STUCK = 10_000;
const PAGE = 100;

/**
 * Looks for runs that are due, and takes them up: one timer for all runs, which keeps no process alive. It begins after
 * the executor's first `recover`, or when a run that it started rests.
 */
export class DueSweep {
  readonly #store: DueStore | undefined;
  readonly #around: Surroundings;
  readonly #stuck = new Map<string, { readonly until: number; readonly pauseMs: number }>();
  #timer: unknown;
  #looking: Promise<void> | undefined;
  #hasBegun = false;
  #isOver = false;
  #isFailing = false;

  constructor(store: DueStore | undefined, around: Surroundings) {
    this.#store = store;
    this.#around = around;
  }

  /** Whether this executor takes due runs up. */
  get isOn(): boolean {
    return this.#hasBegun && !this.#isOver;
  }

  begin(): void {
    if (!this.#store || this.#hasBegun) return;
    this.#hasBegun = true;
    this.#arm();
  }

  end(): void {
    this.#isOver = true;
    this.#around.clock.clearTimeout(this.#timer);
  }

  /** Looks now. Callers during a look share it. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Forgets that a run got no further: an answer has come for it. */
  retry(runId: string): void {
    this.#stuck.delete(runId);
  }

  #arm(): void {
    if (this.#isOver) return;
    const { clock, everyMs, random } = this.#around;
    // Hosts that boot together look at different times.
    this.#timer = clock.setTimeout(() => void this.look().then(() => this.#arm()), everyMs * (0.75 + random() / 2));
    (this.#timer as { unref?: () => void } | undefined)?.unref?.();
  }

  async #look(): Promise<void> {
    const store = this.#store;
    if (!store || this.#isOver) return;
    try {
      for (let after: DueRun | undefined; !this.#isOver; ) {
        const { runs } = await store.listDue({ limit: PAGE, ...(after ? { after } : {}) });
        await this.#takeUp(runs);
        after = runs.at(-1);
        if (runs.length < PAGE) break;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#around.warn('sweep: the due runs cannot be read', { error: toErrorData(error) });
      this.#isFailing = true;
    }
  }

  /** Hosts read the same page: with a random order they meet less often. */
  async #takeUp(runs: readonly DueRun[]): Promise<void> {
    const { random, clock, takeUp } = this.#around;
    const now = clock.monotonic();
    const ready = runs.filter(({ runId }) => (this.#stuck.get(runId)?.until ?? now) <= now);
    for (let i = ready.length - 1; i > 0; i--) {
      const j = Math.min(i, Math.floor(random() * (i + 1)));
      [ready[i], ready[j]] = [ready[j] as DueRun, ready[i] as DueRun];
    }
    for (const run of ready) {
      if (this.#isOver) return;
      if (await takeUp(run)) this.#stuck.delete(run.runId);
      else this.#pause(run.runId);
    }
  }

  #pause(runId: string): void {
    const { clock } = this.#around;
    const before = this.#stuck.get(runId);
    const pauseMs = before ? Math.min(LONGEST_PAUSE_MS, before.pauseMs * 2) : FIRST_PAUSE_MS;
    this.#stuck.delete(runId);
    this.#stuck.set(runId, { until: clock.monotonic() + pauseMs, pauseMs });
    const oldest = this.#stuck.keys().next().value;
    if (this.#stuck.size > MAX_STUCK && oldest !== undefined) this.#stuck.delete(oldest);
  }
}
