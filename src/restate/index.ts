export {
  type BegunRun,
  type MachineEventRequest,
  type RestateRuns,
  type RestateRunsOptions,
  type RunHandlers,
  type RunState,
  restateRuns,
  type StartRequest,
  type WaitAnswer,
} from './restate-runs.ts';
