import { type Backoff, backoffMs, pause } from '../values/backoff.ts';
import type { Clock } from '../values/clock.ts';
import { type ErrorData, readProperty, toErrorData } from '../values/error-data.ts';
import { ModelError, ModelStalledError } from '../values/errors.ts';
import type { Usage } from '../values/usage.ts';
import { spentBy } from './failed-call-usage.ts';
import { askedWait, isRetryable } from './failure.ts';

/** How many times a model is called for one reply, the first time included. */
const MODEL_ATTEMPTS = 3;

/** The wait before the second attempt is between 0 and this; the limit doubles for each further attempt. */
const BASE_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** Added to the wait that the provider asked for: callers that were refused together should not return together. */
const backoff: Backoff = { firstMs: BASE_MS, maxMs: MAX_BACKOFF_MS, jitter: 'full' };
/** Pawl does not wait longer for a provider: the caller should get the error now. */
const MAX_ASKED_MS = 60_000;

/** An attempt that follows a failed one. */
export interface Retry {
  /** Its number; the first retry is attempt 2. */
  readonly attempt: number;
  /** The wait before it. */
  readonly delayMs: number;
  /** Why the attempt before it failed. */
  readonly error: ErrorData;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The most attempts to make; default 3. */
  readonly attempts?: number;
  /** From 0 to below 1; default Math.random. */
  readonly random?: () => number;
  /** Called before the wait of each retry. */
  readonly onRetry?: (retry: Retry) => void;
  /** Called with the cost of each failed attempt, the last one included, if the model reported it. */
  readonly onSpent?: (usage: Usage) => void;
}

/**
 * Makes a model call, and repeats it while its error is retryable. Each retry waits for an exponential backoff with full
 * jitter, and at least for the time that the provider asks for.
 *
 * @throws the signal's reason, at once, when the signal is aborted during a wait
 * @throws {ModelError | ModelStalledError} the last failure; after several attempts its message gives their number
 */
export async function withRetries<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, clock, attempts = MODEL_ATTEMPTS, onRetry, onSpent } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const spent = spentBy(error);
      if (spent !== undefined) onSpent?.(spent);
      if (signal.aborted) throw error;
      if (!isRetryable(error)) throw final(error, attempt);
      const asked = askedWait(error, clock) ?? 0;
      if (asked > MAX_ASKED_MS)
        throw final(error, attempt, `; the provider asks for a wait of ${asked} ms, which is too long`);
      if (attempt >= attempts) throw final(error, attempt);
      const delayMs = asked + backoffMs(attempt, backoff, options.random);
      onRetry?.({ attempt: attempt + 1, delayMs, error: toErrorData(error, 'MODEL') });
      await pause(delayMs, clock, signal);
      signal.throwIfAborted();
    }
  }
}

/** The last failure, with the number of attempts. A failure of the first attempt stays unchanged. */
function final(error: unknown, attempts: number, why = ''): unknown {
  const code = readProperty(error, 'code');
  if ((attempts === 1 && why === '') || (code !== 'MODEL' && code !== 'MODEL_STALLED')) return error;
  const count = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  const message = `${toErrorData(error).message} (after ${count}${why})`;
  const cause = readProperty(error, 'cause');
  const options = cause === undefined ? {} : { cause };
  return code === 'MODEL' ? new ModelError(message, options) : new ModelStalledError(message, options);
}
