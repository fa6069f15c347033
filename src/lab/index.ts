export { exportRuns } from './export-runs.ts';
export { type ImportReport, importRuns } from './import-runs.ts';
export { readRun } from './read-run.ts';
export { type LabFile, type ReadRunsOptions, type RunLines, readRuns } from './read-runs.ts';
export type { RecordedCall, RecordedRun, RecordedStep } from './recorded-run.ts';
export type { ReplayedCall } from './recording.ts';
export { type ReplayOptions, replay } from './replay.ts';
export type { ReplayDifference, ReplayReport } from './report.ts';
export type { Double, DoubledCall } from './stand-ins.ts';
