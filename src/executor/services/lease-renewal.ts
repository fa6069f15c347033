import { isOwning } from '../../store/capabilities.ts';
import type { CheckpointStore, Claim, OwningStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode } from '../../values/error-data.ts';

/** A run, or other work, that needs a valid claim. */
export interface Leaseholder {
  readonly claim: Claim | undefined;
  /** Another owner has the run now. */
  loseLease(cause: unknown): void;
}

/** A claim that is renewed: when it was last known to be valid. */
interface Held {
  /** Monotonic ms. */
  readonly since: number;
  /** How far the wall clock was ahead of the monotonic one, ms. */
  readonly ahead: number;
}

/**
 * A computer that sleeps, and a virtual machine that is paused, may stop the monotonic clock. The wall clock counts that time. A
 * greater difference than this since the claim was known to be valid counts as sleep, ms: then the store is asked.
 */
const SLEPT_MS = 1_000;

/** The pause between two questions whether a claim is still valid, in parts of a lease. */
const ASK_AGAIN = 1 / 30;

/**
 * Renews the claims (leases) of all live runs in time, independently of the runs. A refused renewal means that another
 * owner has the run. An unanswered renewal proves nothing: every write is checked against the newest claim. The run may
 * continue calls without effects, but another process may have taken it over.
 */
export class LeaseRenewal {
  readonly #store: OwningStore | undefined;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #held = new Map<Leaseholder, Held>();
  /** As it was at the last answer of the store. */
  #ahead: number;
  #timer: unknown;

  constructor(store: CheckpointStore | undefined, clock: Clock, leaseMs: number) {
    this.#store = store && isOwning(store) ? store : undefined;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#ahead = this.#aheadNow();
  }

  /**
   * Adds a run whose claim is to be renewed until it is dropped.
   * @param askedAt when the claim was requested, monotonic ms: its time may count from then
   */
  keep(holder: Leaseholder, askedAt: number): void {
    // The computer may have slept since the claim was asked for: an older difference shows it.
    this.#held.set(holder, { since: askedAt, ahead: this.#ahead });
    this.#arm();
  }

  /** Removes a run whose claim is no longer renewed. @returns when its claim was last known to be valid */
  drop(holder: Leaseholder): number | undefined {
    const since = this.#held.get(holder)?.since;
    this.#held.delete(holder);
    if (this.#held.size > 0 || this.#timer === undefined) return since;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    return since;
  }

  /**
   * Whether the claim was valid within its lease, and the computer has not slept since. A process that was frozen for longer
   * (stopped, asleep, its event loop blocked) does not know it. It must ask before a call with effects begins.
   */
  isFresh(holder: Leaseholder): boolean {
    const held = this.#held.get(holder);
    if (!held) return true;
    return this.#clock.monotonic() - held.since < this.#leaseMs && this.#aheadNow() - held.ahead <= SLEPT_MS;
  }

  #aheadNow(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }

  /** Asks until there is an answer, or it is not needed any more. @returns whether the claim is still valid */
  async confirm(holder: Leaseholder, isOver: () => boolean): Promise<boolean> {
    while (holder.claim && !isOver()) {
      await this.#renew(holder);
      if (!holder.claim || isOver()) return false;
      if (this.#held.has(holder) && this.isFresh(holder)) return true;
      await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, this.#leaseMs * ASK_AGAIN));
    }
    return false;
  }

  #arm(): void {
    if (this.#held.size === 0) return;
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = undefined;
      for (const holder of this.#held.keys()) void this.#renew(holder);
      this.#arm();
    }, this.#leaseMs / 3);
  }

  async #renew(holder: Leaseholder): Promise<void> {
    const { claim } = holder;
    if (!claim || !this.#store) return;
    const [since, ahead] = [this.#clock.monotonic(), this.#aheadNow()];
    try {
      const limit = { ms: this.#leaseMs / 3, clock: this.#clock, what: 'store.renew' };
      await withDeadline(this.#store.renew(claim, this.#leaseMs), limit);
      this.#ahead = ahead;
      if (this.#held.has(holder)) this.#held.set(holder, { since, ahead });
    } catch (error) {
      if (!this.#held.has(holder) || !hasCode(error, 'LEASE_LOST')) return;
      this.drop(holder);
      holder.loseLease(error);
    }
  }
}
