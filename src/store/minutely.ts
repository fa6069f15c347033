import type { Clock } from '../values/clock.ts';

/** How often outcomes whose time is over are removed, ms. */
export const MINUTE_MS = 60_000;

/** Does something once a minute, from its `begin` to its `end`. It does not keep the process running. */
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
    // A test clock has timers that are no Node timers.
    (this.#timer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#clock.clearTimeout(this.#timer);
  }
}
