import { isMarking } from '../../store/capabilities.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { type ErrorData, hasTrait } from '../../values/error-data.ts';
import type { Config } from '../host/config.ts';
import type { EndChild } from './executor-services.ts';

/** Why a run was left, and which try in a row that was. */
interface LeftRun {
  readonly runId: string;
  readonly why: ErrorData;
  readonly isParked: boolean;
  /** From 1. */
  readonly tries: number;
  /** The reason of a cancel that has not reached the record. */
  readonly cancel: string | undefined;
}

interface Entry extends LeftRun {
  cancel: string | undefined;
  readonly isReady: PromiseWithResolvers<void>;
  /** When the run is tried again although nothing has changed in its store, monotonic ms; infinite for a parked one. */
  readonly dueAt: number;
  /** The mark of the store at the last look; undefined = none was read. */
  seen: string | undefined;
}

/** The pauses of a run whose store is away. */
const awayPause: Backoff = { firstMs: 250, maxMs: 10_000 };
/** The pauses of a run that this process cannot continue: another one can, or a deploy mends it. */
const unablePause: Backoff = { firstMs: 30_000, maxMs: 600_000 };
/** So many runs are read at the same time. */
const READS = 25;

/**
 * The runs of hosts' machines that this process has left. One timer looks for all of them in the store, each `dueMs`: an unpark, a
 * cancel and an end by another process are seen there. It keeps the process alive, like the runs themselves.
 */
export class LeftRuns {
  readonly #config: Config;
  readonly #endRun: EndChild;
  readonly #entries = new Map<object, Entry>();
  #timer: unknown;
  #isLooking = false;
  #isOver = false;

  /** @param endRun cancels a run in its store */
  constructor(config: Config, endRun: EndChild) {
    this.#config = config;
    this.#endRun = endRun;
  }

  /**
   * Resolves when a run may be tried again; never after a shutdown.
   * @param run names this try of the run, for `forget` and `cancel`
   */
  untilReady(run: object, left: LeftRun): Promise<void> {
    const isReady = Promise.withResolvers<void>();
    if (this.#isOver) return isReady.promise;
    const dueAt = this.#config.clock.monotonic() + this.#pauseMs(left);
    this.#entries.set(run, { ...left, isReady, dueAt, seen: undefined });
    this.#arm();
    return isReady.promise;
  }

  /** The host has stopped the run's actor. */
  forget(run: object): void {
    this.#entries.delete(run);
    this.#arm();
  }

  /** The host cancels a run that was left: its record ends now, or at the next look that finds its store. */
  async cancel(run: object, runId: string, reason: string): Promise<void> {
    const entry = this.#entries.get(run);
    try {
      if (!entry) return await this.#endRun(runId, reason);
      entry.cancel = reason;
      await this.#lookAt(run, entry, undefined);
    } catch (error) {
      this.#config.warn('run.cancel.failed', { runId, error });
    }
  }

  /** The executor shuts down: no run is tried any more. */
  end(): void {
    this.#isOver = true;
    this.#entries.clear();
    this.#arm();
  }

  #pauseMs({ why, isParked, tries }: LeftRun): number {
    const { leaseMs } = this.#config.defaults;
    if (isParked) return Number.POSITIVE_INFINITY;
    if (hasTrait(why, 'isStoreAway')) return backoffMs(tries, awayPause);
    // Another process has the run, or had it: it is dead when its lease is over.
    if (hasTrait(why, 'ownership') || why.code === 'ERR_SHUTDOWN') return leaseMs / 3;
    return backoffMs(tries, unablePause);
  }

  #arm(): void {
    const { clock, defaults } = this.#config;
    if (this.#entries.size === 0) {
      clock.clearTimeout(this.#timer);
      this.#timer = undefined;
    } else if (!this.#isLooking)
      this.#timer ??= clock.setTimeout(() => {
        this.#timer = undefined;
        void this.#look();
      }, defaults.dueMs);
  }

  /** Never rejects. A store that is away is asked no more until the next look. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      const mark = await this.#mark();
      const all = [...this.#entries];
      for (let at = 0; at < all.length; at += READS)
        await Promise.all(all.slice(at, at + READS).map(([run, entry]) => this.#lookAt(run, entry, mark)));
    } catch (error) {
      // Each run that is due says what is wrong.
      if (!hasTrait(error, 'isStoreAway')) this.#tryDue();
    }
    this.#isLooking = false;
    this.#arm();
  }

  async #mark(): Promise<string | undefined> {
    const { store } = this.#config;
    return store && isMarking(store) ? store.changeMark() : undefined;
  }

  async #lookAt(run: object, entry: Entry, mark: string | undefined): Promise<void> {
    const { store, clock } = this.#config;
    if (entry.cancel !== undefined) await this.#endRun(entry.runId, entry.cancel);
    entry.cancel = undefined;
    const isDue = clock.monotonic() >= entry.dueAt;
    const isNews =
      store !== undefined && (mark === undefined || mark !== entry.seen) && (await isChanged(store, entry));
    entry.seen = mark;
    if (isDue || isNews) this.#try(run, entry);
  }

  #tryDue(): void {
    const now = this.#config.clock.monotonic();
    for (const [run, entry] of this.#entries) if (now >= entry.dueAt) this.#try(run, entry);
  }

  #try(run: object, entry: Entry): void {
    if (this.#isOver) return;
    this.#entries.delete(run);
    entry.isReady.resolve();
  }
}

/** Whether a try finds something else than the one before: the run has ended, or was parked or unparked. */
async function isChanged(store: CheckpointStore, { runId, why, isParked }: LeftRun): Promise<boolean> {
  // Nothing is known of it: it may not even have begun.
  if (hasTrait(why, 'isStoreAway')) return false;
  const record = await store.load(runId, { messages: false });
  return record === null || (record.parked !== undefined) !== isParked;
}
