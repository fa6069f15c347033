import { readProperty, toErrorData } from '../../values/error-data.ts';
import { RunPanicError } from '../../values/errors.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import type { Logger } from './options.ts';

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A logger that cannot hurt: what a host's logger throws is dropped, since there is nowhere left to say it. */
export function guardedWarn(logger: Logger): Warn {
  return (message, fields = {}) => {
    try {
      letGo(logger.warn(message, fields));
    } catch {
      // A logger that throws must not end the run that wanted to log.
    }
  };
}

/** A host's callback: a function or, as XState takes it too and inspectors give it, an observer with `next`. */
type Callback<A extends unknown[]> = ((...args: A) => unknown) | { readonly next?: (...args: A) => unknown };

/** A host's callback that cannot hurt: whatever it throws or rejects with is logged. */
export function guarded<A extends unknown[]>(
  what: string,
  callback: Callback<A> | undefined,
  warn: Warn,
): ((...args: A) => void) | undefined {
  if (!callback) return undefined;
  const failed = (error: unknown) => warn(`run: ${what} threw`, { error: toErrorData(error) });
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
 * An observer that cannot hurt, made of one in any form that can be subscribed: an object, an instance of a class, or up
 * to three functions.
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

/** Makes an Error of anything thrown: what is nobody's own error becomes a RunPanicError. */
export function asError(thrown: unknown): Error {
  const data = toErrorData(thrown);
  if (data.code !== 'RUN_PANIC' && isError(thrown)) return thrown;
  return new RunPanicError(data.message, { cause: thrown });
}

/** A proxy may throw even when asked what it is an instance of. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** A proxy may throw even when asked what it is an instance of. */
export function isTypeError(thrown: unknown): thrown is TypeError {
  try {
    return thrown instanceof TypeError;
  } catch {
    return false;
  }
}

/** @throws {TypeError} also where reading throws something else: there is no run yet whose result could carry it */
export function readable<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (isTypeError(thrown)) throw thrown;
    throw new TypeError(`${what} cannot be read: ${toErrorData(thrown).message}`, { cause: thrown });
  }
}
