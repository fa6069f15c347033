import { readProperty } from './error-data.ts';

/** Returns whether a value can be awaited: a promise, or any object with `then`. Never throws. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof readProperty(value, 'then') === 'function';
}

/**
 * Ignores a value that no code waits for: a promise that rejects later causes no unhandled rejection.
 * @param failed gets what it rejects with, or what its `then` throws; must not throw
 */
export function letGo(value: unknown, failed: (thrown: unknown) => void = () => {}): void {
  if (!isThenable(value)) return;
  try {
    // The value must not be passed on: a promise reads `then` of it, which may throw.
    value.then(() => {}, failed);
  } catch (thrown) {
    failed(thrown);
  }
}
