import type { Clock } from '../values/clock.ts';
import { ModelStalledError } from '../values/errors.ts';

/** How long a model may be silent, in milliseconds. */
export interface StallLimits {
  readonly firstChunkMs: number;
  readonly chunkGapMs: number;
}

/**
 * Notices that a model has gone silent. A chunk of content only notes the time; one timer for the whole call looks at the
 * notes when it fires and sleeps for what is left. It is set for the shorter of the two limits, so that it never wakes late.
 */
export class StallWatch {
  readonly #clock: Clock;
  readonly #limits: StallLimits;
  readonly #onStall: (error: ModelStalledError) => void;
  #timer: unknown;
  #deadline: number;
  #hasContent = false;
  #isStopped = false;

  constructor(clock: Clock, limits: StallLimits, onStall: (error: ModelStalledError) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onStall = onStall;
    this.#deadline = clock.monotonic() + limits.firstChunkMs;
    this.#timer = clock.setTimeout(this.#check, Math.min(limits.firstChunkMs, limits.chunkGapMs));
  }

  /** Content arrived. What arrives after its deadline is late, even where the timer has not come to fire. */
  content(): void {
    const now = this.#clock.monotonic();
    if (now >= this.#deadline) {
      this.#stall();
      return;
    }
    this.#hasContent = true;
    this.#deadline = now + this.#limits.chunkGapMs;
  }

  stop(): void {
    this.#isStopped = true;
    this.#clock.clearTimeout(this.#timer);
  }

  readonly #check = (): void => {
    if (this.#isStopped) return;
    const left = this.#deadline - this.#clock.monotonic();
    if (left <= 0) this.#stall();
    else this.#timer = this.#clock.setTimeout(this.#check, left);
  };

  #stall(): void {
    const limit = this.#hasContent ? 'chunkGapMs' : 'firstChunkMs';
    this.#onStall(new ModelStalledError(`the model sent nothing for ${this.#limits[limit]} ms (${limit})`));
  }
}
