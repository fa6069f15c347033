import { CodedError } from '../values/error-codes.ts';

/** Another process or call works on this fan-out's file. */
export class FanOutOwnedElsewhereError extends CodedError {
  readonly code = 'FAN_OUT_OWNED_ELSEWHERE';
}
/** The file belongs to an unfinished fan-out with another prompt or other models, or the folder for its records is taken. */
export class FanOutConflictError extends CodedError {
  readonly code = 'FAN_OUT_CONFLICT';
}
