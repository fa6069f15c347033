import type { Clock } from '../run/clock.ts';
import { withDeadline } from '../run/deadline.ts';
import { hasCode } from '../run/error-data.ts';
import { type CheckpointStore, type Claim, isOwning, type OwningStore } from '../store/port.ts';

/** Whoever works under a claim. */
export interface Leaseholder {
  readonly claim: Claim | undefined;
  /** Somebody else has the run now. */
  loseLease(cause: unknown): void;
  onEnd(cleanup: () => void): void;
}

/**
 * Renews the claims of all live runs, whatever the runs themselves are doing. A renewal that is refused means that
 * somebody else has the run; one that stays unclear until the lease has run out counts as refused.
 */
export class LeaseKeeper {
  readonly #store: OwningStore | undefined;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  /** When each claim was last known to hold, monotonic ms. */
  readonly #held = new Map<Leaseholder, number>();
  #timer: unknown;

  constructor(store: CheckpointStore | undefined, clock: Clock, leaseMs: number) {
    this.#store = store && isOwning(store) ? store : undefined;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  keep(holder: Leaseholder): void {
    this.#held.set(holder, this.#clock.monotonic());
    holder.onEnd(() => this.drop(holder));
    this.#arm();
  }

  drop(holder: Leaseholder): void {
    this.#held.delete(holder);
    if (this.#held.size > 0 || this.#timer === undefined) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Whether the claim held within its lease. A process that was frozen (stopped, asleep, its event loop blocked) for longer
   * does not know until it asks, and must ask before it lets a call with effects begin.
   */
  isFresh(holder: Leaseholder): boolean {
    const since = this.#held.get(holder);
    return since === undefined || this.#clock.monotonic() - since < this.#leaseMs;
  }

  /** Asks now. @returns whether the claim still holds */
  async confirm(holder: Leaseholder): Promise<boolean> {
    if (!holder.claim) return false;
    await this.#renew(holder, this.#held.get(holder) ?? Number.NEGATIVE_INFINITY);
    return this.#held.has(holder);
  }

  #arm(): void {
    if (this.#held.size === 0) return;
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = undefined;
      for (const [holder, since] of this.#held) void this.#renew(holder, since);
      this.#arm();
    }, this.#leaseMs / 3);
  }

  async #renew(holder: Leaseholder, since: number): Promise<void> {
    const { claim } = holder;
    if (!claim || !this.#store) return;
    const askedAt = this.#clock.monotonic();
    try {
      const limit = { ms: this.#leaseMs / 3, clock: this.#clock, what: 'store.renew' };
      await withDeadline(this.#store.renew(claim, this.#leaseMs), limit);
      if (this.#held.has(holder)) this.#held.set(holder, askedAt);
    } catch (error) {
      const isOver = this.#clock.monotonic() - since >= this.#leaseMs;
      if (this.#held.has(holder) && (isOver || hasCode(error, 'LEASE_LOST'))) {
        this.drop(holder);
        holder.loseLease(error);
      }
    }
  }
}
