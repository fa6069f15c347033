// Asking
// What is on the disk
export {
  FanOutConflictError,
  FanOutOwnedElsewhereError,
  WriteConflictError,
  WriteFailedError,
  WriteOutsideRootError,
} from './errors.ts';
export {
  fromModelResponse,
  type ModelResponse,
  type PartialResponse,
  type ResponseSnapshot,
  snapshotFromPartial,
  toModelResponse,
  type WriteSnapshot,
} from './snapshot.ts';
