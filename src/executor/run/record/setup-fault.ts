import type { HeadFields, ParkedReason, RunFields, SetupFault } from '../../../run/fields.ts';
import type { Progress } from '../../../run/progress.ts';
import { type ErrorData, toErrorData } from '../../../values/error-data.ts';
import { SetupError } from '../../../values/errors.ts';
import type { ActiveRun } from '../active-run.ts';

/*
 * What lies in the setup of one process ends no run that has recorded something: another process may have the model, the key or the
 * tool. The run is given back as it is, and the process leaves its agent alone for a while.
 */

/** Returns whether the record of the run is in the store of this executor, which hands it to other processes. */
export function isStoredHere({ options, services: { config } }: ActiveRun): boolean {
  return config.store !== undefined && options.checkpointer === undefined;
}

/** Returns whether a run has recorded more than its beginning. */
export function hasRecorded(run: Pick<HeadFields, 'iteration' | 'openStep' | 'completedPhases'>): boolean {
  const { iteration, openStep, completedPhases } = run;
  return iteration > 0 || openStep !== undefined || completedPhases.length > 0;
}

/** Returns the error with which this process gives the run back, and notes the fault in it. */
export function setupError(run: ActiveRun, fault: ErrorData): SetupError {
  run.startFacts.setupFault = fault;
  const why = `${fault.code}: ${fault.message}`;
  return new SetupError(`run ${run.runId} is given back, this process cannot continue it: ${why}`, { cause: fault });
}

/**
 * Returns what the record of the run says of the fault from now on: since when no process could continue it, and that it is parked
 * when that is too long ago. A child of a live run is never parked for it: its parent is.
 * @param setup what it says so far
 */
export function faultFields(run: ActiveRun, setup: SetupFault | undefined): Pick<RunFields, 'setup' | 'parked'> {
  const fault = run.startFacts.setupFault as ErrorData;
  const { clock, defaults } = run.services.config;
  const now = clock.now();
  const since = setup?.since ?? now;
  const parked = { code: 'SETUP', reason: reasonOf(fault, defaults.setupMs) } satisfies ParkedReason;
  const isParked = now - since >= defaults.setupMs && parentOf(run) === undefined;
  return { setup: { code: fault.code, since }, ...(isParked ? { parked } : {}) };
}

function reasonOf({ code, message }: ErrorData, ms: number): string {
  return `no process could continue it for ${ms} ms (defaults.setupMs): ${code}: ${message}`;
}

/** Returns the state of a run that is given back while it works. No start without progress is counted for it. */
export function leftWithFault(run: ActiveRun, progress: Progress): Progress {
  const { attempts } = progress;
  // This process has recorded something: an earlier fault is over.
  const setup = attempts === 0 ? undefined : run.startFacts.setup;
  return { ...progress, ...faultFields(run, setup), attempts: Math.max(0, attempts - 1) };
}

/** Returns the state of a run whose budget refuses its next call: parked, unless a run that is live here called it. */
export function leftByBudget(run: ActiveRun, progress: Progress, { code, message }: ErrorData): Progress {
  const parked = parentOf(run) ? {} : { parked: { code, reason: message } };
  return { ...progress, attempts: 0, ...parked };
}

/** Leaves the agent of the run alone for a while. A parent that is live here is given back as well, and notes it. */
export function pauseAgent(run: ActiveRun): void {
  const { runId, agent, services, startFacts } = run;
  if (startFacts.setupFault && parentOf(run) === undefined)
    services.paused.note({ runId, agentId: agent.id, fault: startFacts.setupFault });
}

/** Gives a run back that is working: it begins nothing new, and leaves when no call with effects is running. */
export function giveBack(run: ActiveRun, fault: ErrorData): void {
  run.send({ type: 'run.leave', cause: toErrorData(setupError(run, fault)) });
}

/** Ends the pause of the run's agent once the run gets past its setup. */
export function followSetup({ agent, services, life, startFacts }: ActiveRun): void {
  if (!services.paused.isAny) return;
  void life.progressed.promise.then(() => services.paused.leave(agent.id, startFacts.setupFault === undefined));
}

function parentOf({ parent, seed, services }: ActiveRun): ActiveRun | undefined {
  const above = parent ?? seed.request.parent;
  return above && services.registry.live(above.runId);
}
