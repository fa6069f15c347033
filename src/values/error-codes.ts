import type * as errors from './errors.ts';

/**
 * The codes of all errors of this package but those of `pawl/fan-out`; `docs/errors.md` explains each. They are read off
 * the classes, so that a new class is in the list at once.
 */
export type KnownErrorCode = {
  [Name in keyof typeof errors]: (typeof errors)[Name] extends new (
    ...given: never
  ) => { readonly code: infer Code }
    ? Code
    : never;
}[keyof typeof errors];

/** A code of Pawl, or one of the host's own: what a port, a tool or a provider threw keeps its `code`. */
export type ErrorCode = KnownErrorCode | (string & {});
