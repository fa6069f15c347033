import { CodedError } from '../values/error-codes.ts';

/** A proposed write leads out of the root, through a link, or to a file that models may not change. Nothing was written. */
export class WriteOutsideRootError extends CodedError {
  readonly code = 'WRITE_OUTSIDE_ROOT';
}
/** A file has changed since the model read it, or since its change was applied. Nothing was written. */
export class WriteConflictError extends CodedError {
  readonly code = 'WRITE_CONFLICT';
}
/** The disk refused a write; earlier writes were undone. */
export class WriteFailedError extends CodedError {
  readonly code = 'WRITE_FAILED';
}
