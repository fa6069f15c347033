import type { Clock } from './clock.ts';

/** The waits between the attempts of a call that may succeed later. */
export interface Backoff {
  /** The wait before the first retry, ms. */
  readonly firstMs: number;
  /** The longest wait, ms, before jitter. */
  readonly maxMs: number;
  /** The factor from each wait to the next; default 2. */
  readonly factor?: number;
  /**
   * `full`: any time from 0 to the wait, for a service that refused many callers at once. `around`: from half of the wait to
   * one and a half times the wait, for processes that poll one lock. Absent: each wait is exact.
   */
  readonly jitter?: 'full' | 'around';
}

/**
 * Returns the wait before a retry, ms: exponential, with jitter.
 * @param retry its number; the first retry is 1
 * @param random from 0 to below 1; default Math.random
 */
export function backoffMs(
  retry: number,
  { firstMs, maxMs, factor = 2, jitter }: Backoff,
  random = Math.random,
): number {
  const ms = Math.min(maxMs, firstMs * factor ** (retry - 1));
  if (jitter === 'full') return Math.round(random() * ms);
  return jitter === 'around' ? ms * (0.5 + random()) : ms;
}

/** The backoff between two attempts on a database that another process has locked. */
export const lockBackoff: Backoff = { firstMs: 2, maxMs: 200, jitter: 'around' };

/** Waits `ms` milliseconds, or until the signal is aborted; if `ms` is infinite, until it is aborted. Never rejects. */
export function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = ms === Number.POSITIVE_INFINITY ? undefined : clock.setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
