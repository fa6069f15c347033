export { type Arbitraries, arbitraries } from './arbitraries/arbitraries.ts';
export type { Arbitrary, FastCheck, GivenArbitrary } from './arbitraries/fast-check.ts';
export type { RunStory } from './arbitraries/stories.ts';
export type { WorkflowStoryOptions } from './arbitraries/workflows.ts';
export { type CrashTestReport, type CrashTestViolation, crashTest } from './crash-test/crash-test.ts';
export type { CrashTestPromise } from './crash-test/ledger.ts';
export type { CrashTestOptions } from './crash-test/options.ts';
export type {
  AskedWait,
  CrashTestAnswer,
  CrashTestAnswers,
  CrashTestEvents,
  RestingWorkflow,
} from './crash-test/person.ts';
export type { CrashTestExecutorOptions } from './crash-test/process.ts';
export {
  type RecordingCheckpointer,
  type RecordingFactory,
  recordingCheckpointer,
  recordingFactory,
} from './recording-checkpointer.ts';
export { type AcceptedRun, type AskedCall, freshProgress, runEvents, type SaidTurn } from './run-events.ts';
export {
  callTool,
  callTools,
  fail,
  hang,
  reply,
  type ScriptedEntry,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedRequest,
  type ScriptedStep,
  type ScriptedToolCall,
  scriptedModel,
  stallAfter,
} from './scripted-model.ts';
export {
  type ContractCase,
  checkpointStoreContract,
  type DamageKind,
  type StoreUnderTest,
} from './store-contract/store-contract.ts';
export { type TestClock, testClock } from './test-clock.ts';
export { type MachinePath, type TestPathsOptions, testPaths, type WalkedPaths } from './test-paths.ts';
