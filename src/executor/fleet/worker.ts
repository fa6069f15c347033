import type { DueStore } from '../../store/due-port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { dueStoreOf, type TakenDue, takeDue } from '../lifecycle/due/take-due.ts';
import { startTaken, type TakenEnd, type TakenStart } from '../lifecycle/due/taken-run.ts';
import { lookForHeldUp } from '../lifecycle/threads/parked-turn.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { TakenClaim } from '../services/due/taken-claim.ts';
import { LoopDelay } from '../services/loop-delay.ts';
import { Listener } from './listener.ts';

import type { WorkLimits } from './options.ts';

/** What a worker does, at one moment. */
export interface WorkerStats {
  /** The runs that it works on. */
  readonly live: number;
  /** How many runs it has taken so far; those that it gave back count. */
  readonly taken: number;
  /** How many of those it has parked: only a person moves them. */
  readonly parked: number;
  /** How many times it asked its store for due runs. */
  readonly polls: number;
  /** Whether the store did not answer the last time. */
  readonly storeAway: boolean;
}

/** The pauses after a store that did not answer, ms. */
const away: Backoff = { firstMs: 500, maxMs: 30_000, jitter: 'around' };
/** A suspect that has to wait for another one is due again after this time, ms. */
const SUSPECT_PAUSE_MS = 2_000;

/** Notifications that come within this time cost one look, ms. */
const WAKE_MS = 20;

/** A worker that has not looked for so many of its pauses does not look any more. */
const STUCK_PAUSES = 10;

/** A run that this worker has taken. */
interface Working {
  readonly key: string | undefined;
  readonly start: Promise<TakenStart>;
}

/** Gives back a suspect that has to wait for another one. */
async function later({ stuck }: ExecutorServices, claim: TakenClaim): Promise<TakenStart> {
  // A parked run has no time: only this process can leave it alone for a while.
  if (claim.run.definition !== undefined) stuck.note(claim.run, 'stuck');
  await claim.giveBack(SUSPECT_PAUSE_MS);
  return { over: Promise.resolve('given-back') };
}

/** Takes due runs as long as it has free places, and works on each for a slice. */
export class FleetWorker {
  readonly #services: ExecutorServices;
  readonly #due: DueStore;
  readonly #limits: WorkLimits;
  readonly #live = new Map<TakenClaim, Working>();
  #taken = 0;
  #parked = 0;
  #polls = 0;
  /** Times in a row that the store did not answer. */
  #failures = 0;
  #timer: unknown;
  #looking: Promise<void> | undefined;
  /** Something has changed since the look began, or no place was free: look again when one is. */
  #isWanted = false;
  #isOver = false;
  /** When it last asked, monotonic ms. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When it last asked, or found a place free, monotonic ms. */
  #lookedAt = 0;
  readonly #delay: LoopDelay;
  readonly #listener: Listener | undefined;
  /** The grace of slices that begin while the worker drains, ms. */
  #drainMs = 0;

  /** @throws {NOT_DURABLE} @throws {UNSUPPORTED} for a store in which no runs rest */
  constructor(services: ExecutorServices, limits: WorkLimits) {
    this.#services = services;
    this.#limits = limits;
    this.#due = dueStoreOf(services, 'work');
    const { clock, random, warn, defaults } = services.config;
    this.#delay = new LoopDelay(clock);
    this.#lookedAt = clock.monotonic();
    const around = { clock, random, warn, ms: defaults.portMs, wake: () => this.#wake() };
    this.#listener = limits.listen && new Listener(limits.listen, around);
  }

  /** Looks for due runs from now on. */
  begin(): void {
    this.#delay.begin();
    void this.#listener?.begin();
    this.look();
  }

  stats(): WorkerStats {
    const [live, taken, parked, polls] = [this.#live.size, this.#taken, this.#parked, this.#polls];
    return { live, taken, parked, polls, storeAway: this.#failures > 0 };
  }

  /** How many of its places are free, and how many are not. */
  get places(): { readonly free: number; readonly busy: number } {
    return { free: this.#isOver ? 0 : this.#room(), busy: this.#live.size };
  }

  /** Whether it has free places, a store that answers, and has not asked it for ten times its pause. */
  get isStuck(): boolean {
    if (this.#isOver || this.#failures > 0 || this.#room() === 0) return false;
    const { clock, defaults } = this.#services.config;
    // A call of a store that does not answer ends after `portMs`: that is no reason for a restart.
    const patience = Math.max(STUCK_PAUSES * this.#limits.dueMs, 2 * defaults.portMs);
    return clock.monotonic() - this.#lookedAt > patience;
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
    this.#delay.end();
    this.#listener?.end();
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
      const limit = Math.min(this.#room(), this.#roomOfKeys());
      if (this.#room() === 0) return;
      this.#isWanted = false;
      this.#lookedAt = this.#services.config.clock.monotonic();
      if (this.#delay.isLong) return this.#arm(this.#pollMs);
      const taken = await this.#take(limit);
      if (!taken) return this.#arm(backoffMs(this.#failures, away, this.#services.config.random));
      await this.#beginAll(taken.claims);
      this.#isWanted ||= taken.claims.length > 0 && (taken.claims.length >= limit || taken.nextMs === 0);
      this.#arm(this.#pauseMs(taken));
    }
  }

  /** A notification has come: looks soon. Those that come close together cost one look. */
  #wake(): void {
    const { clock } = this.#services.config;
    const ms = this.#askedAt + WAKE_MS - clock.monotonic();
    if (ms <= 0) this.look();
    else this.#arm(ms);
  }

  async #take(limit: number): Promise<TakenDue | undefined> {
    this.#polls += 1;
    this.#askedAt = this.#services.config.clock.monotonic();
    this.#services.unknownAgents.look();
    this.#services.noticeSweep.look();
    lookForHeldUp(this.#services);
    try {
      const taken = await takeDue(this.#services, this.#due, { limit, fullKeys: this.#fullKeys() });
      this.#failures = 0;
      this.#taken += taken.claims.length;
      return taken;
    } catch (error) {
      if (this.#failures === 0) this.#services.config.warn('due.read.failed', { error });
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
    const mayBegin = !isSuspect || alone.tryEnter(1);
    const { budgetMs, graceMs } = this.#limits;
    const start = mayBegin
      ? startTaken(this.#services, claim, { maxAttempts, slice: { budgetMs, graceMs } })
      : later(this.#services, claim);
    this.#live.set(claim, { key: claim.run.fairKey, start });
    if (isSuspect && mayBegin) void start.then(({ run }) => run?.life.progressed.promise).then(() => alone.leave());
    void start.then(async ({ run, over }) => {
      const end = await over;
      if (run?.endFacts.parked) this.#parked += 1;
      this.#onEnd(claim, end);
    });
  }

  #onEnd(claim: TakenClaim, end: TakenEnd): void {
    const { fairKey } = claim.run;
    const wasFull = this.#room() === 0 ? this.#isWanted : fairKey !== undefined && this.#fullKeys().includes(fairKey);
    this.#live.delete(claim);
    this.#lookedAt = this.#services.config.clock.monotonic();
    // A run that was left is due now, perhaps behind others.
    if (end === 'left' || wasFull) this.look();
  }

  /** How many runs it may take now. */
  #room(): number {
    return this.#limits.concurrency - this.#live.size;
  }

  /** The live runs of each fair key. Runs without one are not counted: they belong to no tenant. */
  #ofKeys(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { key } of this.#live.values()) if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts;
  }

  #fullKeys(): readonly string[] {
    return [...this.#ofKeys()].flatMap(([key, count]) => (count >= this.#limits.perKey ? [key] : []));
  }

  /** How many runs it may ask for, so that no key gets more than its places: all of them may be of one key. */
  #roomOfKeys(): number {
    const { perKey } = this.#limits;
    const rooms = [...this.#ofKeys().values()].map((count) => perKey - count).filter((room) => room > 0);
    return Math.min(perKey, ...rooms);
  }

  /** Processes that begin together ask at different times. */
  get #pollMs(): number {
    return this.#limits.dueMs * (0.8 + 0.4 * this.#services.config.random());
  }

  #pauseMs({ nextMs = Number.POSITIVE_INFINITY, claims }: TakenDue): number {
    if (claims.length === 0 && nextMs === 0) return this.#pollMs;
    // The next one may be a run that this process cannot continue: another one should have it first.
    const laterMs = this.#services.stuck.isAny ? this.#limits.dueMs / 2 : 0;
    // Whole milliseconds, as timers have them: a shorter one would ask again before the next run is due.
    return Math.min(this.#pollMs, Math.ceil(nextMs + laterMs));
  }

  #arm(ms: number): void {
    const { clock } = this.#services.config;
    clock.clearTimeout(this.#timer);
    if (!this.#isOver) this.#timer = clock.setTimeout(() => this.look(), ms);
  }
}
