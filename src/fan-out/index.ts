// Asking

// On the disk
export { buildCheckpoint, type Checkpoint } from './checkpoint.ts';
export { loadCheckpoint, saveCheckpoint } from './checkpoint-file.ts';
export {
  FanOutConflictError,
  FanOutOwnedElsewhereError,
  WriteConflictError,
  WriteFailedError,
  WriteOutsideRootError,
} from './errors.ts';
export { fanOut } from './fan-out.ts';
export type { Judge, JudgeFunction, JudgeRequest, JudgeVerdict } from './judge.ts';
export type { FanOutOptions, FanOutResult, ModelsById } from './options.ts';
export type { JudgeUsage, Ranking } from './ranking.ts';
export { IncrementalSaver } from './saver.ts';
export {
  fromModelResponse,
  type ModelResponse,
  type PartialResponse,
  type ResponseSnapshot,
  snapshotFromPartial,
  toModelResponse,
  type WriteSnapshot,
} from './snapshot.ts';
// Proposed writes
export { type AppliedWrites, applyWrites } from '../edits/apply.ts';
export { type PreviewedFile, previewWrites } from '../edits/preview.ts';
export { type FileChange, type RewoundWrites, rewind } from '../edits/undo.ts';
