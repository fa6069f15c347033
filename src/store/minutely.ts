import type { Clock } from '../values/clock.ts';

/** How often expired outcomes are removed, ms. */
export const MINUTE_MS = 60_000;

/**
 * Calls a function once a minute, from `begin` to `end`, for example to remove expired outcomes. It does not keep the
 * process running.
 */
export class Minutely {
  readonly #clock: Clock;
  readonly #work: () => void;
  #timer: unknown;
  #isEnded = false;

  constructor(clock: Clock, work: () => void) {
    this.#clock = clock;
    this.#work = work;
  }

  /** A second call does nothing. */
  begin(): void {
    if (this.#isEnded || this.#timer !== undefined) return;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#work();
      this.begin();
    }, MINUTE_MS);
    // The timers of a test clock are not Node timers.
    (this.#timer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#clock.clearTimeout(this.#timer);
  }
}
