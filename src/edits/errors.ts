import { PawlError } from '../values/errors.ts';

/** A proposed write leads out of the root, through a link, or into what no model may change. Nothing was written. */
export class WriteOutsideRootError extends PawlError {
  readonly code = 'WRITE_OUTSIDE_ROOT';
}
/** A file is not what it was when the model read it, or when its change was applied. Nothing was written. */
export class WriteConflictError extends PawlError {
  readonly code = 'WRITE_CONFLICT';
}
/** The disk refused a write; what had been written before it was taken back. */
export class WriteFailedError extends PawlError {
  readonly code = 'WRITE_FAILED';
}
