// Changes to files that a model proposes: previewed, applied together, undone.
export { type AppliedWrites, applyWrites } from './apply.ts';
export { type PreviewedFile, previewWrites } from './preview.ts';
export type { ProposedWrites, WriteSnapshot } from './proposed-write.ts';
export { type FileChange, type RewoundWrites, rewind } from './undo.ts';
