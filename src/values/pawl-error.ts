import { type ErrorCode, policyOf } from './error-codes.ts';
import { readProperty } from './error-data.ts';
import type { AnsweredBefore } from './errors.ts';

/** Marks every error of Pawl, also across two installed copies of the package. */
const brand: unique symbol = Symbol.for('pawl.error') as never;

/**
 * An error of Pawl: a stable `code` to branch on, and a message that says what happened and what to do. `docs/errors.md` explains each
 * code. Ask `isPawlError`, not `instanceof`: two copies of the package in one process have two classes but one code.
 * @example throw new PawlError('STORE_UNAVAILABLE', 'the database did not answer', { cause }); // in a store of your own
 */
export class PawlError extends Error {
  readonly code: ErrorCode;
  readonly [brand] = true;

  /** Whether the call that failed may succeed later, unchanged. */
  get retry(): 'never' | 'later' {
    return policyOf(this.code)?.retry ?? 'never';
  }

  constructor(code: ErrorCode, message?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The base of the errors with a class of their own, which has the code. */
export abstract class CodedError extends PawlError {
  abstract override readonly code: string;

  constructor(message?: string, options?: { cause?: unknown }) {
    super('', message, options);
  }
}

/** The fields that errors of one code have besides. */
type FieldsOf<Code> = Code extends 'ALREADY_ANSWERED' ? { readonly answered: AnsweredBefore | undefined } : unknown;

/**
 * Returns whether a value is an error of Pawl, made by this copy of the package or by another. Never throws.
 * @param code only an error with this code
 * @example try { await executor.park(runId, 'later'); } catch (error) { if (!isPawlError(error, 'RUN_NOT_FOUND')) throw error; }
 */
export function isPawlError<Code extends ErrorCode>(
  value: unknown,
  code?: Code,
): value is PawlError & { readonly code: Code } & FieldsOf<Code> {
  if (readProperty(value, brand as never) !== true) return false;
  return code === undefined || readProperty(value, 'code') === code;
}
