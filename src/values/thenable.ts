import { readProperty } from './error-data.ts';

/** Whether a value can be awaited, asked in a way that cannot throw. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof readProperty(value, 'then') === 'function';
}

/** Lets a value go that nobody waits for: if it is a promise that rejects, that is nobody's business either. */
export function letGo(value: unknown): void {
  if (!isThenable(value)) return;
  try {
    // The value must not be passed on: a promise reads `then` of what it passes on, which may throw.
    value.then(
      () => {},
      () => {},
    );
  } catch {
    // A `then` that throws has nothing to say either.
  }
}
