import type { Clock } from '../../values/clock.ts';
import type { Deadline } from './stop-causes.ts';

/** The working time of a run in this process, ms. It stands still while the run only waits. */
export class RunTime {
  readonly #clock: Clock;
  /** When the work began, monotonic ms; the time in which the run only waited is added. */
  #startedAt: number;
  #finishedAt: number | undefined;
  /** Since when the run only waits, monotonic ms. */
  #stillSince: number | undefined;
  #deadline: Deadline | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  get elapsedMs(): number {
    return (this.#stillSince ?? this.#finishedAt ?? this.#clock.monotonic()) - this.#startedAt;
  }

  get isStill(): boolean {
    return this.#stillSince !== undefined;
  }

  /** Sets its end. */
  limit(deadline: Deadline): void {
    this.#deadline = deadline;
  }

  pause(): void {
    this.#stillSince = this.#clock.monotonic();
    this.#deadline?.pause();
  }

  /** Lets the time run again. @param hasEnd whether the deadline counts again */
  resume(hasEnd: boolean): void {
    this.#startedAt += this.#clock.monotonic() - (this.#stillSince ?? this.#clock.monotonic());
    this.#stillSince = undefined;
    if (hasEnd) this.#deadline?.resume();
  }

  /** The work is over. */
  end(): void {
    this.#finishedAt = this.#clock.monotonic();
  }

  /** Takes the timer of the deadline away. */
  dropDeadline(): void {
    this.#deadline?.pause();
  }
}
