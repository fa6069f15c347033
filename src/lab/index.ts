export { readRun } from './read-run.ts';
export type { RecordedCall, RecordedRun, RecordedStep } from './recorded-run.ts';
export type { ReplayedCall } from './recording.ts';
export { type ReplayOptions, replay } from './replay.ts';
export type { ReplayDifference, ReplayReport } from './report.ts';
export type { Double, DoubledCall } from './stand-ins.ts';
