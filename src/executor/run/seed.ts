import type { RunInput } from '../../../machines/context.ts';
import { type Agent, definitionOf } from '../../agent/agent.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { beginProgress, type Progress, withoutConversation } from '../../run/progress.ts';
import type { RunRequest } from '../../run/request.ts';
import type { Person } from '../../run/waits/wait.ts';
import { Hidden } from '../../values/hidden.ts';
import { isWorkflow } from '../../workflow/program.ts';
import { asError, isError } from '../host/guard.ts';
import type { RunOrigin } from '../host/observers.ts';
import { type Beginning, metaFor, refusedRequest, requestOf } from '../host/request.ts';
import type { PersistedRun } from '../host/snapshot.ts';
import type { TakenClaim } from '../services/due/taken-claim.ts';
import type { ExecutorServices } from './active-run.ts';
import type { SliceLimits } from './slice.ts';

/** A run that may have ended badly is to continue all the same. */
export interface RetryAsked {
  /** Who asked for it. */
  readonly by?: Person;
}

/** The origin of a run, before any lookup. */
export interface RunSeed {
  readonly request: RunRequest;
  /** The id was made for this start: it meets no run that is live, stored or ended. */
  readonly isNewId: boolean;
  readonly origin: RunOrigin;
  /** The snapshot of a host machine that is being restored. */
  readonly persisted?: PersistedRun;
  /** Bad input or an unreadable snapshot: the run ends with this error and touches nothing. */
  readonly refusal?: Error;
  /** The agent of the run cannot be read in this process. */
  readonly fault?: Error;
  /** Recovery: how many starts without progress a run gets. */
  readonly maxAttempts?: number;
  /** Recovery: without a record there is nothing to do; such a run must not begin again. */
  readonly mustExist?: boolean;
  /** A run that ended badly continues: see `reopen`. */
  readonly retry?: RetryAsked;
  /** The first record of a fork: a run that is not there yet begins with it. */
  readonly forked?: RunCheckpoint;
  /** How long this process may work on the run; absent = until it ends. */
  readonly slice?: SliceLimits;
  /** The claim that was made when the run was found due; absent = the start claims it. */
  readonly claim?: TakenClaim;
  /** The run is stored, and no part of it is worked on. */
  readonly isAdmission?: true;
  /** It is the turn of a message whose sender waits for it. */
  readonly hasSender?: true;
  /** The number of agents above this one; absent = none. */
  readonly depth?: number;
  /** Of a run that this process has left: which try in a row this is that finds it; absent = the first. */
  readonly tries?: number;
}

/** Returns where a run is that has not begun, before its record is read. */
export function newProgress({ config }: Pick<ExecutorServices, 'config'>, agent: Agent, request: RunRequest): Progress {
  const meta = metaFor(agent, request, config.defaults.model);
  const progress = beginProgress(meta, definitionOf(agent), request);
  return isWorkflow(agent) ? withoutConversation(progress) : progress;
}

/** Returns what the machine of a run begins with: at its start, and at each later try of a run that was left. */
export function inputOfSeed(services: Pick<ExecutorServices, 'config'>, agent: Agent, seed: RunSeed): RunInput {
  const progress = newProgress(services, agent, seed.request);
  return {
    progress,
    ...(seed.persisted ? { restored: new Hidden({ progress, persisted: seed.persisted }) } : {}),
    ...(seed.origin === 'hosted' ? { isHosted: true } : {}),
  };
}

/**
 * Makes the seed of a start from an invocation: its request, or the error with which the run ends. Bad input becomes the
 * run's result, under the given id.
 * @throws {TypeError} for a wrong call, unless a host's machine made it: XState would never end that machine
 */
export function seedOf(invocation: unknown, beginning: Beginning): RunSeed {
  const origin = beginning.isHosted ? 'hosted' : beginning.parent ? 'child' : 'started';
  try {
    const request = requestOf(invocation, beginning);
    return { request, isNewId: ((invocation as { runId?: unknown }).runId ?? undefined) === undefined, origin };
  } catch (thrown) {
    if (!beginning.isHosted && isError(thrown) && thrown instanceof TypeError) throw thrown;
    return { request: refusedRequest(invocation, beginning.newId), isNewId: true, origin, refusal: asError(thrown) };
  }
}
