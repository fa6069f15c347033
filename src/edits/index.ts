// Changes to files that a model proposes: shown, applied all together, taken back.
export { type AppliedWrites, applyWrites } from './apply.ts';
export { WriteConflictError, WriteFailedError, WriteOutsideRootError } from './errors.ts';
export { type PreviewedFile, previewWrites } from './preview.ts';
export type { ProposedWrites, WriteSnapshot } from './proposed-write.ts';
export { type FileChange, type RewoundWrites, rewind } from './undo.ts';
