import { toErrorData } from '../run/error-data.ts';
import { RunPanicError } from '../run/errors.ts';
import type { Logger } from './ports.ts';

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A logger that cannot hurt: what a host's logger throws is dropped, since there is nowhere left to say it. */
export function guardedWarn(logger: Logger): Warn {
  return (message, fields = {}) => {
    try {
      logger.warn(message, fields);
    } catch {
      // A logger that throws must not end the run that wanted to log.
    }
  };
}

/** A host's callback that cannot hurt: whatever it throws or rejects with is logged. */
export function guarded<A extends unknown[]>(
  what: string,
  callback: ((...args: A) => unknown) | undefined,
  warn: Warn,
): ((...args: A) => void) | undefined {
  if (!callback) return undefined;
  const failed = (error: unknown) => warn(`run: ${what} threw`, { error: toErrorData(error) });
  return (...args) => {
    try {
      const answer = callback(...args);
      if (isThenable(answer)) answer.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

/** Makes an Error of anything thrown: what is nobody's own error becomes a RunPanicError. */
export function asError(thrown: unknown): Error {
  const data = toErrorData(thrown);
  if (data.code !== 'RUN_PANIC' && thrown instanceof Error) return thrown;
  return new RunPanicError(data.message, { cause: thrown });
}
