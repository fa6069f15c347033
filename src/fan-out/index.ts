// Proposed writes, also exported by `pawl/edits`
export { type AppliedWrites, applyWrites } from '../edits/apply.ts';
export { type PreviewedFile, previewWrites } from '../edits/preview.ts';
export type { ProposedWrites, WriteSnapshot } from '../edits/proposed-write.ts';
export { type FileChange, type RewoundWrites, rewind } from '../edits/undo.ts';

// The call, and its files
export { buildCheckpoint, type Checkpoint, type FanOutEnd } from './checkpoint.ts';
export { loadCheckpoint, saveCheckpoint } from './checkpoint-file.ts';
export { fanOut } from './fan-out.ts';
export { IncrementalSaver } from './incremental-saver.ts';
export type { Judge, JudgeFunction, JudgeRequest, JudgeVerdict } from './judge.ts';
export type { FanOutOptions, FanOutResult, FanOutRetention, ModelsById } from './options.ts';
export type { JudgeUsage, Ranking } from './ranking.ts';
export {
  fromModelResponse,
  type ModelResponse,
  type PartialResponse,
  type ResponseSnapshot,
  snapshotFromPartial,
  toModelResponse,
} from './snapshot.ts';
