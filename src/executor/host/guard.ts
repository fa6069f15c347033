import type { Warn } from '../../log/log.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { RunPanicError } from '../../values/errors.ts';
import { isThenable } from '../../values/thenable.ts';

/** A host's callback: a function, or an observer with `next`, as XState accepts it and inspectors provide it. */
type Callback<A extends unknown[]> = ((...args: A) => unknown) | { readonly next?: (...args: A) => unknown };

/** Wraps a host's callback so that it cannot fail: what it throws or rejects with is logged. */
export function guarded<A extends unknown[]>(
  what: string,
  callback: Callback<A> | undefined,
  warn: Warn,
): ((...args: A) => void) | undefined {
  if (!callback) return undefined;
  const failed = (error: unknown) => warn('callback.threw', { what, error });
  return (...args) => {
    try {
      const answer = typeof callback === 'function' ? callback(...args) : callback.next?.(...args);
      if (isThenable(answer)) answer.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  };
}

interface Observer {
  readonly next: (value: unknown) => void;
  readonly error: (error: unknown) => void;
  readonly complete: () => void;
}

/**
 * Wraps a subscriber of a run's actor so that it cannot throw: an object, an instance of a class, or up to three functions.
 */
export function guardedObserver(warn: Warn, ...observer: readonly unknown[]): Observer {
  const [first] = observer;
  const isObject = typeof first === 'object' && first !== null;
  const part = (name: string, position: number) => {
    const callback = isObject ? readProperty(first, name) : observer[position];
    const bound = typeof callback === 'function' ? callback.bind(isObject ? first : undefined) : () => {};
    return guarded<unknown[]>(`a subscriber's ${name}`, bound, warn) as (value?: unknown) => void;
  };
  return { next: part('next', 0), error: part('error', 1), complete: part('complete', 2) };
}

/** Makes an Error of any thrown value: a value that is not an error becomes a RunPanicError. */
export function asError(thrown: unknown): Error {
  const data = toErrorData(thrown);
  if (data.code !== 'RUN_PANIC' && isError(thrown)) return thrown;
  return new RunPanicError(data.message, { cause: thrown });
}

/** Returns whether a thrown value is an Error. A proxy may throw from `instanceof`. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Returns whether a thrown value is a TypeError. A proxy may throw from `instanceof`. */
export function isTypeError(thrown: unknown): thrown is TypeError {
  try {
    return thrown instanceof TypeError;
  } catch {
    return false;
  }
}

/**
 * Reads a value of the host, and throws a TypeError where reading it fails.
 * @throws {TypeError} for any error of reading: there is no run yet whose result could carry it
 */
export function readable<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (isTypeError(thrown)) throw thrown;
    throw new TypeError(`${what} cannot be read: ${toErrorData(thrown).message}`, { cause: thrown });
  }
}
