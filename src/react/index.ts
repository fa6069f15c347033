'use client';

export {
  PawlProvider,
  type RunActions,
  type ThreadActions,
  useClient,
  useRun,
  useThread,
  useWaiting,
  type WaitOfRun,
  type WaitsActions,
} from './hooks.ts';
export type { RunCallPart, RunFailure, RunPart, RunState, RunStep, RunWait } from './run-state.ts';
export type { PendingMessage, ThreadState, WaitsState } from './sources.ts';
