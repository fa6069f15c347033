import type { Clock } from '../../values/clock.ts';

/** How often the delay is measured, ms. */
const SAMPLE_MS = 500;
/** A timer that fires later than this is late, ms. */
const LATE_MS = 200;
/** For how long each timer must be late, ms. */
const LATE_FOR_MS = 5_000;

/** Measures how late timers fire: a process whose event loop is that busy should not take more work. */
export class LoopDelay {
  readonly #clock: Clock;
  #timer: unknown;
  /** Since when each sample was late, monotonic ms. */
  #lateSince: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    const dueAt = this.#clock.monotonic() + SAMPLE_MS;
    this.#timer = this.#clock.setTimeout(() => {
      if (this.#clock.monotonic() - dueAt > LATE_MS) this.#lateSince ??= dueAt;
      else this.#lateSince = undefined;
      this.begin();
    }, SAMPLE_MS);
  }

  end(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  /** Whether timers have been late for 5 s. */
  get isLong(): boolean {
    return this.#lateSince !== undefined && this.#clock.monotonic() - this.#lateSince >= LATE_FOR_MS;
  }
}
