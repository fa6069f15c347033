import * as errors from '../../values/errors.ts';
import type { Arbitrary, Generators } from './fast-check.ts';

type Make = (message: string) => unknown;

const coded = (code: string, message: string) => Object.assign(new Error(message), { code });
const named = (name: string, message: string) => Object.assign(new Error(message), { name });

/** Each makes a shutdown error: ours, that of another copy of the package, the host's own, one from plain data. */
const shutdowns: readonly Make[] = [
  (message) => new errors.ShutdownError(message),
  (message) => coded('ERR_SHUTDOWN', message),
  (message) => ({ name: 'ShutdownError', code: 'ERR_SHUTDOWN', message }),
];

const otherStops: readonly Make[] = [
  (message) => new errors.CancelledError(message),
  (message) => new errors.DeadlineExceededError(message),
  (message) => new errors.CriticKillError(message),
  (message) => new errors.LeaseLostError(message),
  (message) => new DOMException(message, 'AbortError'),
  (message) => named('AbortError', message),
  (message) => coded('ECONNRESET', message),
  (message) => message,
  (message) => ({ code: 7, message }),
  // Only its message mentions a shutdown: the code decides.
  () => new Error('ERR_SHUTDOWN: shutdown'),
];

const failures: readonly Make[] = [
  (message) => new errors.ModelError(message),
  (message) => new errors.ModelStalledError(message),
  (message) => new errors.ToolLoopError(message),
  (message) => new errors.StepLimitError(message),
  (message) => new errors.RunPanicError(message, { cause: new TypeError(message) }),
  (message) => new errors.StoreUnavailableError(message),
  (message) => new errors.PortTimeoutError(message),
  (message) => new errors.RecordTooLargeError(message),
  (message) => new errors.UnknownTierError(message),
  (message) => new TypeError(message),
  // As the AI SDK's providers throw them.
  (message) => Object.assign(named('AI_APICallError', message), { statusCode: 429, isRetryable: true }),
  (message) => Object.assign(new Error(message), { code: 'CANCELLED' }),
  (message) => Object.defineProperty(new Error(message), 'code', { get: unreadable }),
  (message) => ({ name: 'ModelError', code: 'MODEL', message }),
  (message) => message || 'thrown',
  () => 42,
  () => Symbol('thrown'),
];

function unreadable(): never {
  throw new Error('this getter throws');
}

type Wrap = (inner: unknown, beside: readonly unknown[]) => unknown;

/** The errors that may wrap a cause. */
const wraps: readonly Wrap[] = [
  (cause) => new Error('outer', { cause }),
  (cause) => ({ name: 'Outer', code: 'OUTER', cause }),
  (cause, beside) => new AggregateError([...beside, cause]),
  (cause, beside) => new AggregateError([cause, ...beside], 'several at once'),
];

/** Makes arbitraries of errors that a run may end with, and of causes for which it may be stopped. */
export function causesWith(fc: Generators): {
  [Name in 'runError' | 'shutdownCause' | 'otherCause']: Arbitrary<unknown>;
} {
  const message = fc.string({ unit: 'grapheme', maxLength: 12 });
  const oneOf = (makes: readonly Make[]): Arbitrary<unknown> =>
    fc.record({ make: fc.constantFrom(...makes), message }).map(({ make, message: text }) => make(text));
  const layer = fc.record({ wrap: fc.constantFrom(...wraps), beside: fc.array(oneOf(otherStops), { maxLength: 3 }) });
  const wrapped = (makes: readonly Make[]): Arbitrary<unknown> =>
    fc
      .record({ inner: oneOf(makes), layers: fc.array(layer, { maxLength: 6 }) })
      .map(({ inner, layers }) => layers.reduce((cause, { wrap, beside }) => wrap(cause, beside), inner));
  return {
    runError: oneOf([...failures, ...otherStops, ...shutdowns]),
    shutdownCause: wrapped(shutdowns),
    otherCause: wrapped(otherStops),
  };
}
