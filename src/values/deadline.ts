import type { Clock } from './clock.ts';
import { PortTimeoutError } from './errors.ts';

/**
 * Waits for a promise, at most `ms` milliseconds. A value or a rejection after the deadline is ignored.
 * @param what names the wait in the error, for example `store.save`
 * @throws {PORT_TIMEOUT} after `ms` milliseconds
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

/**
 * Waits for a promise until the signal is aborted and `before` has settled. A value or a rejection after that is ignored.
 * @throws the signal's reason
 */
export function untilAborted<T>(
  promise: PromiseLike<T>,
  signal: AbortSignal,
  before: () => PromiseLike<unknown> | undefined = () => undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    const stop = (): void => void Promise.resolve(before()).then(giveUp, giveUp);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop);
    const end = (): void => signal.removeEventListener('abort', stop);
    Promise.resolve(promise).then(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
  });
}
