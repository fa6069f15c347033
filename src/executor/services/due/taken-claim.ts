import type { DueRun, RestingStore, TakenRun } from '../../../store/due-port.ts';
import type { Claim, ReleaseOptions } from '../../../store/port.ts';
import { hasCode } from '../../../values/error-data.ts';
import type { Services } from '../executor-services.ts';
import type { Leaseholder } from '../lease-renewal.ts';
import type { LiveRun } from '../registry.ts';

/** A command may come between each read of the inbox and its `leave`. */
const MAX_TRIES = 5;

type Around = Pick<Services<LiveRun>, 'config' | 'leases' | 'outlive'>;

/** When a run was taken. */
interface TakenAt {
  /** The store's wall clock, ms: that of this host may differ. */
  readonly now: number;
  /** Before the store was asked, monotonic ms. */
  readonly askedAt: number;
}

/**
 * The claim of a due run that this process has taken, until its run has begun, and again if the run could not begin. It is
 * renewed meanwhile, and a shutdown waits until a run or the store has it.
 */
export class TakenClaim implements Leaseholder {
  readonly run: DueRun;
  /** Starts in a row without progress, the next one included. */
  readonly attempts: number;
  readonly #services: Around;
  readonly #at: TakenAt;
  #claim: Claim | undefined;
  #gone = Promise.withResolvers<void>();
  /** What the store gets with the claim. */
  #options: ReleaseOptions;

  constructor(services: Around, { run, ...claim }: TakenRun, at: TakenAt) {
    this.run = run;
    this.attempts = claim.attempts;
    this.#services = services;
    this.#at = at;
    this.#options = { attempts: Math.max(0, claim.attempts - 1) };
    this.#hold(claim, at.askedAt);
  }

  /** The claim, while no run has it. */
  get claim(): Claim | undefined {
    return this.#claim;
  }

  loseLease(): void {
    this.#claim = undefined;
    this.#gone.resolve();
  }

  /** Hands the claim to a run. @returns it, and since when it is valid, monotonic ms; undefined if another process has it */
  take(): { readonly claim: Claim; readonly since: number } | undefined {
    const claim = this.#claim;
    const since = this.#services.leases.drop(this);
    this.loseLease();
    return claim && { claim, since: since ?? this.#at.askedAt };
  }

  /** Takes the claim back from a run that could not begin, or could not be ended. */
  put(claim: Claim, options: ReleaseOptions): void {
    this.#options = options;
    this.#hold(claim, this.#services.leases.drop(this) ?? this.#services.config.clock.monotonic());
  }

  #hold(claim: Claim, since: number): void {
    this.#claim = claim;
    this.#gone = Promise.withResolvers();
    void this.#services.outlive(this.#gone.promise);
    this.#services.leases.keep(this, since);
  }

  /**
   * Gives the run back to the store: it is due after a pause. The start is not counted. Never rejects.
   * @param pauseMs 0 = it is due as before
   * @returns when it is due, the store's wall clock, ms; undefined if that is not known
   */
  async giveBack(pauseMs: number): Promise<number | undefined> {
    const { config, leases } = this.#services;
    const claim = this.#claim;
    leases.drop(this);
    this.#claim = undefined;
    if (!claim) return undefined;
    try {
      const store = config.store as RestingStore;
      const dueAt = pauseMs === 0 ? undefined : await this.#leave(store, claim, pauseMs);
      if (dueAt === undefined) await store.release(claim, this.#options);
      return dueAt;
    } catch (error) {
      if (hasCode(error, 'LEASE_LOST')) return undefined;
      config.warn('run.give-back.failed', { runId: claim.runId, error });
      return undefined;
    } finally {
      this.#gone.resolve();
    }
  }

  async #leave(store: RestingStore, claim: Claim, pauseMs: number): Promise<number | undefined> {
    const { clock } = this.#services.config;
    const { attempts } = this.#options;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const sent = await store.commands.inbox({ runId: claim.runId });
      const readUpTo = sent.reduce((most, { seq = 0 }) => Math.max(most, seq), 0);
      const dueAt = Math.ceil(this.#at.now + (clock.monotonic() - this.#at.askedAt) + pauseMs);
      if (await store.due.leave(claim, { dueAt, readUpTo, attempts, givenBack: true })) return dueAt;
    }
    return undefined;
  }
}
