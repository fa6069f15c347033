import { type Backoff, backoffMs, pause } from '../values/backoff.ts';
import type { Clock } from '../values/clock.ts';
import { type ErrorData, readProperty, toErrorData } from '../values/error-data.ts';
import { ModelError, ModelStalledError } from '../values/errors.ts';
import type { Usage } from '../values/usage.ts';
import { spentBy } from './failed-call-usage.ts';
import { failureOf, statusOfError } from './failure.ts';

/** How many times a model is called for one reply, the first time included. */
const MODEL_ATTEMPTS = 5;
/** From the first failure to the last attempt. */
const MODEL_RETRY_MS = 60_000;

/** The wait before the second attempt is between 0 and this; the limit doubles for each further attempt. */
const BASE_MS = 1_000;
const MAX_BACKOFF_MS = 8_000;
/** Added to the wait that the provider asked for: callers that were refused together should not return together. */
const backoff: Backoff = { firstMs: BASE_MS, maxMs: MAX_BACKOFF_MS, jitter: 'full' };

/** An attempt that follows a failed one. */
export interface Retry {
  /** Its number; the first retry is attempt 2. */
  readonly attempt: number;
  /** The wait before it. */
  readonly delayMs: number;
  /** Why the attempt before it failed. */
  readonly error: ErrorData;
  /** The HTTP status of that failure, if it had one. */
  readonly status?: number;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The most attempts to make; default 5. */
  readonly attempts?: number;
  /** The most attempts for an answer that came without content; default: `attempts`. */
  readonly answerAttempts?: number;
  /** The time from the first failure to the last attempt, ms; default 60,000. */
  readonly withinMs?: number;
  /** From 0 to below 1; default Math.random. */
  readonly random?: () => number;
  /** Called before the wait of each retry. */
  readonly onRetry?: (retry: Retry) => void;
  /** Returns whether this failure ends the attempts, because another model is asked at once. The provider asks for this wait, ms. */
  readonly passesOn?: (error: unknown, retryAfterMs: number) => boolean;
  /** Called with the cost of each failed attempt, the last one included, if the model reported it. */
  readonly onSpent?: (usage: Usage) => void;
}

/**
 * Makes a model call, and repeats it while its errors may pass. Each retry waits for an exponential backoff with full jitter,
 * after the time that the provider asks for. A provider that asks for more time than is left ends the retries at once.
 *
 * @throws the signal's reason, at once, when the signal is aborted during a wait
 * @throws {ModelError | ModelStalledError} the last failure; after several attempts its message gives their number. `failureOf`
 *   says the same of it as of the original error
 */
export async function withRetries<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, clock, onRetry, onSpent } = options;
  let endsAt: number | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const spent = spentBy(error);
      if (spent !== undefined) onSpent?.(spent);
      if (signal.aborted) throw error;
      // A long answer that breaks off is tried again: the time counts from the first failure.
      endsAt ??= clock.monotonic() + (options.withinMs ?? MODEL_RETRY_MS);
      const delayMs = delayAfter(error, { attempt, leftMs: endsAt - clock.monotonic() }, options);
      onRetry?.(retryOf(error, attempt + 1, delayMs));
      await pause(delayMs, clock, signal);
      signal.throwIfAborted();
    }
  }
}

function retryOf(failure: unknown, attempt: number, delayMs: number): Retry {
  const status = statusOfError(failure);
  return { attempt, delayMs, error: toErrorData(failure, 'MODEL'), ...(status === undefined ? {} : { status }) };
}

/** The wait after a failed attempt, ms. @throws the failure, if no attempt follows */
function delayAfter(error: unknown, made: { attempt: number; leftMs: number }, options: RetryOptions): number {
  const { clock, attempts = MODEL_ATTEMPTS, answerAttempts = attempts, random } = options;
  const { attempt, leftMs } = made;
  const { kind, retryAfterMs = 0, requests = 1 } = failureOf(error, clock);
  const most = kind === 'passing' ? attempts : Math.min(requests, answerAttempts);
  if (kind === 'blocked' || attempt >= most) throw final(error, attempt);
  if (options.passesOn?.(error, retryAfterMs)) throw final(error, attempt);
  if (leftMs <= 0) throw final(error, attempt, '; modelRetryMs is over');
  if (retryAfterMs > leftMs)
    throw final(error, attempt, `; the provider asks for a wait of ${retryAfterMs} ms, which is too long`);
  return Math.min(leftMs, retryAfterMs + backoffMs(attempt, backoff, random));
}

/** The last failure, with the number of attempts. A failure of the first attempt stays unchanged. */
function final(error: unknown, attempts: number, why = ''): unknown {
  const code = readProperty(error, 'code');
  if ((attempts === 1 && why === '') || (code !== 'MODEL' && code !== 'MODEL_STALLED')) return error;
  const count = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  const message = `${toErrorData(error).message} (after ${count}${why})`;
  const cause = readProperty(error, 'cause');
  const options = cause === undefined ? {} : { cause };
  if (code === 'MODEL_STALLED') return new ModelStalledError(message, options);
  const marks = ['isRetryable', 'requests', 'finishReason'].map((key) => [key, readProperty(error, key)] as const);
  return Object.assign(
    new ModelError(message, options),
    Object.fromEntries(marks.filter(([, mark]) => mark !== undefined)),
  );
}
