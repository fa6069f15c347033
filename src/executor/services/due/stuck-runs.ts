import type { DueRun } from '../../../store/due-port.ts';
import type { Clock } from '../../../values/clock.ts';

/** A run that got no further is left alone for this time, doubled each time up to the longest, ms. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
/** A process that is known to be unable gives a run back for this time, doubled each time up to the longest, ms. */
const FIRST_SHORT_MS = 2_000;
const LONGEST_SHORT_MS = 15_000;
/** Most runs that are remembered as stuck. */
const MAX_STUCK = 10_000;

/** What became of a due run. `stuck`: it got no further, and is left alone for a while. */
type TakenUp = 'further' | 'stuck';

/** A run that got no further, when it was due at that time. */
interface Stuck {
  /** Whole ms: stores may keep less of the pause of a run that was given back. */
  readonly dueAt: number;
  /** Monotonic ms. */
  readonly until: number;
  readonly pauseMs: number;
  /** How many times it was given back since it was tried. */
  readonly returns?: number;
}

/** The runs that this process could not continue, and how long it leaves each of them alone. */
export class StuckRuns {
  readonly #clock: Clock;
  readonly #stuck = new Map<string, Stuck>();
  /** Until when no run is taken by a definition, monotonic ms. */
  readonly #definitions = new Map<string, number>();
  /** Until when any run is left alone, monotonic ms. */
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what became of a run that was taken up. @returns how long it is left alone, ms */
  note({ runId, dueAt, definition }: Pick<DueRun, 'runId' | 'dueAt' | 'definition'>, what: TakenUp): number {
    const before = this.#stuck.get(runId);
    this.#stuck.delete(runId);
    if (what === 'further') return 0;
    const pauseMs = before ? Math.min(LONGEST_PAUSE_MS, before.pauseMs * 2) : FIRST_PAUSE_MS;
    const until = this.#clock.monotonic() + pauseMs;
    this.#stuck.set(runId, { dueAt: Math.ceil(dueAt), until, pauseMs });
    this.#until = Math.max(this.#until, until);
    // A parked run has no time: it would be taken again at once.
    if (definition !== undefined) this.#definitions.set(definition, until);
    const oldest = this.#stuck.keys().next().value;
    if (this.#stuck.size > MAX_STUCK && oldest !== undefined) this.#stuck.delete(oldest);
    return pauseMs;
  }

  /**
   * Returns for how long a run that is left alone is given back, ms: longer each time, because this process takes it again until
   * its pause is over. The longest time is short enough for a process that can continue it.
   * @param random from 0 to 1: processes that give back together take at different times
   */
  shortPauseMs(run: Pick<DueRun, 'runId' | 'dueAt'>, random: number): number {
    const stuck = this.#stuck.get(run.runId);
    if (!stuck) return 0;
    const { returns = 0 } = stuck;
    this.#stuck.set(run.runId, { ...stuck, returns: returns + 1 });
    const ms = Math.min(LONGEST_SHORT_MS, FIRST_SHORT_MS * 2 ** Math.min(returns, 10));
    return Math.min(this.leftMs(run), Math.ceil(ms * (0.8 + 0.4 * random)));
  }

  /** Whether there may be a run that is left alone just now. */
  get isAny(): boolean {
    return this.#until > this.#clock.monotonic();
  }

  /** Whether runs that were parked for a definition are taken: none of them got no further just now. */
  isTried(definition: string): boolean {
    return (this.#definitions.get(definition) ?? Number.NEGATIVE_INFINITY) <= this.#clock.monotonic();
  }

  /** Forgets that a run got no further: an answer has come for it. */
  retry(runId: string): void {
    this.#stuck.delete(runId);
  }

  /** Notes the time at which a stuck run is due from now on: this process has set it, and no command has come. */
  onMoved({ runId, dueAt }: Pick<DueRun, 'runId' | 'dueAt'>): void {
    const stuck = this.#stuck.get(runId);
    if (stuck) this.#stuck.set(runId, { ...stuck, dueAt: Math.ceil(dueAt) });
  }

  /** A run that is due for another reason than before is taken up at once: a command has come, or its process is gone. */
  isReady(run: Pick<DueRun, 'runId' | 'dueAt'>): boolean {
    return this.leftMs(run) === 0;
  }

  /** Returns how long a run is left alone, ms; 0 = it may be taken up. */
  leftMs({ runId, dueAt }: Pick<DueRun, 'runId' | 'dueAt'>): number {
    const stuck = this.#stuck.get(runId);
    return stuck?.dueAt === Math.ceil(dueAt) ? Math.max(0, stuck.until - this.#clock.monotonic()) : 0;
  }
}
