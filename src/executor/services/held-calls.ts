import type { Clock } from '../../values/clock.ts';

/** A request whose turn comes. */
export interface HeldCall {
  /** Monotonic, ms. */
  readonly until: number;
  readonly resolve: () => void;
}

/**
 * The requests of an executor that are held until their turns, on one timer. With a timer and a listener for each of them, ten thousand runs
 * that wait would hold four times as much.
 */
export class HeldCalls {
  readonly #clock: Clock;
  /** That which is held for the shortest time is the first. */
  readonly #calls: HeldCall[] = [];
  #timer: unknown;
  /** When the timer is over. */
  #at = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Holds a request until a time, or until `release`. @param until monotonic, ms @param enter gets what `release` takes */
  hold(until: number, enter: (call: HeldCall) => void): Promise<void> {
    return new Promise((resolve) => {
      const call = { until, resolve };
      this.#calls.splice(this.#calls.findLastIndex((other) => other.until <= until) + 1, 0, call);
      enter(call);
      this.#arm();
    });
  }

  /** Ends the hold of a request before its time: its run is stopped. */
  release(call: HeldCall): void {
    const place = this.#calls.indexOf(call);
    if (place >= 0) this.#calls.splice(place, 1);
    call.resolve();
    this.#arm();
  }

  #arm(): void {
    const at = this.#calls[0]?.until ?? Number.POSITIVE_INFINITY;
    if (at === this.#at) return;
    this.#clock.clearTimeout(this.#timer);
    this.#at = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.setTimeout(() => this.#due(), Math.max(0, at - this.#clock.monotonic()));
  }

  #due(): void {
    this.#at = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonic();
    while (this.#calls[0] && this.#calls[0].until <= now) this.#calls.shift()?.resolve();
    this.#arm();
  }
}
