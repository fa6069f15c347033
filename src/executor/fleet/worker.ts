import type { DueStore } from '../../store/port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { toErrorData } from '../../values/error-data.ts';
import { dueStoreOf, type TakenDue, takeDue } from '../lifecycle/due/take-due.ts';
import { startTaken, type TakenEnd, type TakenStart } from '../lifecycle/due/taken-run.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { TakenClaim } from '../services/taken-claim.ts';
import type { WorkLimits } from './options.ts';

/** What a worker does, at one moment. */
export interface WorkerStats {
  /** The runs that it works on. */
  readonly live: number;
  /** How many runs it has taken so far; those that it gave back count. */
  readonly taken: number;
  /** How many times it asked its store for due runs. */
  readonly polls: number;
  /** Whether the store did not answer the last time. */
  readonly storeAway: boolean;
}

/** The pauses after a store that did not answer, ms. */
const away: Backoff = { firstMs: 500, maxMs: 30_000, jitter: 'around' };
/** A suspect that has to wait for another one is due again after this time, ms. */
const SUSPECT_PAUSE_MS = 2_000;

/** A run that this worker has taken. */
interface Working {
  readonly key: string | undefined;
  readonly start: Promise<TakenStart>;
}

/** Takes due runs as long as it has free places, and works on each for a slice. */
export class FleetWorker {
  readonly #services: ExecutorServices;
  readonly #store: DueStore;
  readonly #limits: WorkLimits;
  readonly #live = new Map<TakenClaim, Working>();
  #taken = 0;
  #polls = 0;
  /** Times in a row that the store did not answer. */
  #failures = 0;
  #timer: unknown;
  #looking: Promise<void> | undefined;
  /** Something has changed since the look began, or no place was free: look again when one is. */
  #isWanted = false;
  #isOver = false;
  /** The grace of slices that begin while the worker drains, ms. */
  #drainMs = 0;

  /** @throws {NotDurableError} @throws {UnsupportedError} for a store in which no runs rest */
  constructor(services: ExecutorServices, limits: WorkLimits) {
    this.#services = services;
    this.#limits = limits;
    this.#store = dueStoreOf(services, 'work');
  }

  /** Looks for due runs from now on. */
  begin(): void {
    this.look();
  }

  stats(): WorkerStats {
    return { live: this.#live.size, taken: this.#taken, polls: this.#polls, storeAway: this.#failures > 0 };
  }

  /** Looks for due runs now, or as soon as there is a free place. */
  look(): void {
    this.#isWanted = true;
    if (this.#isOver || this.#looking || this.#room() === 0) return;
    this.#services.config.clock.clearTimeout(this.#timer);
    this.#looking = this.#lookOn().finally(() => {
      this.#looking = undefined;
      if (this.#isWanted) this.look();
    });
  }

  /** Takes nothing more, and ends its slices. @returns when all its runs are left, or given back. Never rejects */
  async drain(drainMs: number): Promise<void> {
    this.#isOver = true;
    this.#drainMs = drainMs;
    this.#services.config.clock.clearTimeout(this.#timer);
    await Promise.all([...this.#live.values()].map((working) => this.#endSlice(working)));
    await this.#looking;
  }

  async #endSlice({ start }: Working): Promise<void> {
    const { run, over } = await start;
    run?.slice?.end({ graceMs: this.#drainMs });
    await over;
  }

  /** Asks until no more runs are due, or no place is free. */
  async #lookOn(): Promise<void> {
    while (this.#isWanted && !this.#isOver) {
      const limit = this.#room();
      if (limit === 0) return;
      this.#isWanted = false;
      const taken = await this.#take(limit);
      if (!taken) return this.#arm(backoffMs(this.#failures, away, this.#services.config.random));
      await this.#beginAll(taken.claims);
      const isMore = taken.claims.length > 0 && (taken.claims.length >= limit || taken.nextMs === 0);
      this.#isWanted ||= isMore;
      this.#arm(this.#pauseMs(taken));
    }
  }

  async #take(limit: number): Promise<TakenDue | undefined> {
    this.#polls += 1;
    try {
      const taken = await takeDue(this.#services, this.#store, { limit, fullKeys: [] });
      this.#failures = 0;
      this.#taken += taken.claims.length;
      return taken;
    } catch (error) {
      if (this.#failures === 0)
        this.#services.config.warn('work: the due runs cannot be taken', { error: toErrorData(error) });
      this.#failures += 1;
      return undefined;
    }
  }

  async #beginAll(claims: readonly TakenClaim[]): Promise<void> {
    if (this.#isOver) return void (await Promise.all(claims.map((claim) => claim.giveBack(0))));
    for (const claim of claims) this.#begin(claim);
  }

  #begin(claim: TakenClaim): void {
    const { maxAttempts } = this.#services.config.defaults;
    const { alone } = this.#services.recovery;
    const isSuspect = claim.attempts >= maxAttempts;
    if (isSuspect && !alone.tryEnter(1)) return void claim.giveBack(SUSPECT_PAUSE_MS);
    const { budgetMs, graceMs } = this.#limits;
    const start = startTaken(this.#services, claim, { maxAttempts, slice: { budgetMs, graceMs } });
    this.#live.set(claim, { key: claim.run.fairKey, start });
    if (isSuspect) void start.then(({ run }) => run?.life.progressed.promise).then(() => alone.leave());
    void start.then(({ over }) => over).then((end) => this.#ended(claim, end));
  }

  #ended(claim: TakenClaim, end: TakenEnd): void {
    const wasFull = this.#room() === 0;
    this.#live.delete(claim);
    // A run that was left is due now, perhaps behind others.
    if (end === 'left' || (wasFull && this.#isWanted)) this.look();
  }

  /** How many runs it may take now. */
  #room(): number {
    return this.#limits.concurrency - this.#live.size;
  }

  #pauseMs({ nextMs = Number.POSITIVE_INFINITY, claims }: TakenDue): number {
    const pollMs = this.#limits.dueMs * (0.8 + 0.4 * this.#services.config.random());
    return claims.length === 0 && nextMs === 0 ? pollMs : Math.min(pollMs, nextMs);
  }

  #arm(ms: number): void {
    const { clock } = this.#services.config;
    clock.clearTimeout(this.#timer);
    if (!this.#isOver) this.#timer = clock.setTimeout(() => this.look(), ms);
  }
}
