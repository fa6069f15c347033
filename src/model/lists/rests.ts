import { backoffMs } from '../../values/backoff.ts';
import type { Clock } from '../../values/clock.ts';
import { failureOf } from '../failure.ts';
import type { Model } from '../port.ts';

/** How long a model of a list is left alone after a first failure, ms. */
export const FIRST_REST_MS = 30_000;
/** The longest rest of a model that asks for no longer one, ms. */
const MAX_REST_MS = 600_000;

interface Rest {
  readonly failures: number;
  /** Monotonic ms. */
  readonly endsAt: number;
  /** After the rest one call tries the model, while the others ask the next one. */
  isTried: boolean;
}

/**
 * The models of lists that failed in this process, and how long each is left alone. Another process finds out by itself. A model that
 * never failed has no entry.
 */
export class ModelRests {
  readonly #clock: Clock;
  readonly #firstMs: number;
  readonly #rests: WeakMap<Model, Rest> = new WeakMap();

  /** @param firstMs the rest after a first failure; it doubles with each further one */
  constructor(clock: Clock, firstMs: number) {
    this.#clock = clock;
    this.#firstMs = firstMs;
  }

  /** Returns whether a model is left alone now, or is tried by another call. */
  isResting(model: Model): boolean {
    const rest = this.#rests.get(model);
    return rest !== undefined && (rest.isTried || this.#clock.monotonic() < rest.endsAt);
  }

  /** Returns whether the last call of a model failed, as far as this process knows. */
  hasFailed(model: Model): boolean {
    return this.#rests.has(model);
  }

  /** A model is asked; what this returns must be called with its end: an error, undefined for an answer, `null` if the run was stopped. */
  begin(model: Model): (error: unknown) => void {
    const rest = this.#rests.get(model);
    if (rest && !this.isResting(model)) rest.isTried = true;
    return (error) => {
      if (error === undefined) this.#rests.delete(model);
      else if (error === null) this.#giveBack(model);
      else this.#onFailure(model, error);
    };
  }

  #giveBack(model: Model): void {
    const rest = this.#rests.get(model);
    if (rest) rest.isTried = false;
  }

  /** What a model refuses of one request alone says nothing about the next one. */
  #onFailure(model: Model, error: unknown): void {
    const { kind, retryAfterMs = 0 } = failureOf(error, this.#clock);
    if (kind === 'final') {
      this.#giveBack(model);
      return;
    }
    const now = this.#clock.monotonic();
    const rest = this.#rests.get(model);
    // Of many calls that fail together, one counts.
    const isKnown = rest !== undefined && !rest.isTried && now < rest.endsAt;
    const failures = (rest?.failures ?? 0) + (isKnown ? 0 : 1);
    const ms = backoffMs(failures, { firstMs: this.#firstMs, maxMs: MAX_REST_MS });
    const endsAt = Math.max(isKnown ? rest.endsAt : now + ms, now + retryAfterMs);
    this.#rests.set(model, { failures, endsAt, isTried: false });
  }
}
