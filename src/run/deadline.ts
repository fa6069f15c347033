import type { Clock } from './clock.ts';
import { PortTimeoutError } from './errors.ts';

/**
 * Waits for a promise, but not for ever. What comes after the deadline is dropped, a late rejection included.
 * @param what names the wait in the error, for example `store.save`
 * @throws {PortTimeoutError} after `ms` milliseconds
 */
export function withDeadline<T>(
  promise: PromiseLike<T>,
  limit: { ms: number; clock: Clock; what: string },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = limit.clock.setTimeout(() => {
      reject(new PortTimeoutError(`${limit.what} did not answer within ${limit.ms} ms`));
    }, limit.ms);
    Promise.resolve(promise).then(
      (value) => {
        limit.clock.clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        limit.clock.clearTimeout(timer);
        reject(error);
      },
    );
  });
}
