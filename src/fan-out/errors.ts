import { PawlError } from '../values/errors.ts';

/** Another process works on this fan-out's file. */
export class FanOutOwnedElsewhereError extends PawlError {
  readonly code = 'FAN_OUT_OWNED_ELSEWHERE';
}
/** The file is an unfinished fan-out of another prompt, or of models that are not named; or the place of its records is taken. */
export class FanOutConflictError extends PawlError {
  readonly code = 'FAN_OUT_CONFLICT';
}
