import type { Clock } from '../run/clock.ts';
import { withDeadline } from '../run/deadline.ts';
import { hasCode } from '../run/error-data.ts';
import { type CheckpointStore, isOwning, type OwningStore } from '../store/port.ts';
import type { RunScope } from './scope.ts';

/**
 * Renews the claims of all live runs, whatever the runs themselves are doing. A renewal that is refused means that
 * somebody else has the run; one that stays unclear until the lease has run out counts as refused.
 */
export class LeaseKeeper {
  readonly #store: OwningStore | undefined;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  /** When each claim was last known to hold, monotonic ms. */
  readonly #held = new Map<RunScope, number>();
  #timer: unknown;

  constructor(store: CheckpointStore | undefined, clock: Clock, leaseMs: number) {
    this.#store = store && isOwning(store) ? store : undefined;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  keep(scope: RunScope): void {
    this.#held.set(scope, this.#clock.monotonic());
    scope.onEnd(() => this.drop(scope));
    this.#arm();
  }

  drop(scope: RunScope): void {
    this.#held.delete(scope);
    if (this.#held.size > 0 || this.#timer === undefined) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    if (this.#held.size === 0) return;
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = undefined;
      for (const [scope, since] of this.#held) void this.#renew(scope, since);
      this.#arm();
    }, this.#leaseMs / 3);
  }

  async #renew(scope: RunScope, since: number): Promise<void> {
    const { claim } = scope;
    if (!claim || !this.#store) return;
    const askedAt = this.#clock.monotonic();
    try {
      const limit = { ms: this.#leaseMs / 3, clock: this.#clock, what: 'store.renew' };
      await withDeadline(this.#store.renew(claim, this.#leaseMs), limit);
      if (this.#held.has(scope)) this.#held.set(scope, askedAt);
    } catch (error) {
      const isOver = this.#clock.monotonic() - since >= this.#leaseMs;
      if (this.#held.has(scope) && (isOver || hasCode(error, 'LEASE_LOST'))) {
        this.drop(scope);
        scope.loseLease(error);
      }
    }
  }
}
