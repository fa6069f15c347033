import { type ErrorData, hasCode, hasTrait, readProperty, toErrorData } from '../values/error-data.ts';
import { ShutdownError } from '../values/errors.ts';

/** What the end of a run does with its record. */
export type CheckpointOutcome = 'complete' | 'leave-running' | 'fail';

/**
 * How a run ended, as its result reports it. `ok`: it has its answer. `error`: something failed for good. `timeout`: it used up its working
 * time. `cancelled`: its caller ended it. `killed`: the critic ended it. `interrupted`: this process left it, and another one continues it.
 * `waiting`: it is suspended in its store until one of its waits is over.
 */
export type RunStatus = 'ok' | 'error' | 'timeout' | 'cancelled' | 'killed' | 'interrupted' | 'waiting';

/** Returns whether a cause is a shutdown: by code, through `cause` chains and AggregateErrors. */
export function isShutdown(cause: unknown): boolean {
  return hasCode(cause, 'ERR_SHUTDOWN');
}

/** Causes by which another process continues the whole tree of a run. Only the cause's own code counts. */
const leftWhole: ReadonlySet<unknown> = new Set(['RUN_SLICED', 'SETUP', 'BUDGET_EXCEEDED']);

/** Returns whether a run that was stopped for this reason is left for another process, with its children. */
export function isLeftFor(reason: unknown): boolean {
  return isShutdown(reason) || hasCode(reason, 'LEASE_LOST') || leftWhole.has(readProperty(reason, 'code'));
}

/** Causes by which a run leaves by itself. Only the cause's own code counts: the code of a tool deeper in it says nothing. */
const leaving: ReadonlySet<unknown> = new Set(['RUN_WAITS', 'RUN_PARKED', 'RUN_SLICED', 'SETUP', 'BUDGET_EXCEEDED']);

function isLeaving(cause: unknown): boolean {
  return isShutdown(cause) || leaving.has(readProperty(cause, 'code'));
}

/** Refusals that say nothing about the run itself. */
const passing: ReadonlySet<string> = new Set(['RUN_PARKED', 'NEWER_DEPLOYMENT', 'CHECKPOINT_TOO_NEW']);

/**
 * Returns whether a start was refused for a reason that passes: another process has the run, it is parked, or this process
 * cannot continue it.
 */
export function isPassingRefusal(error: ErrorData): boolean {
  return passing.has(error.code) || hasTrait(error, 'ownership');
}

/** Returns whether a run was left with this error because its record is parked. */
export function isParkedBy(error: Pick<ErrorData, 'code'> | undefined): boolean {
  return error?.code === 'RUN_PARKED' || error?.code === 'BUDGET_EXCEEDED';
}

/**
 * Converts the cause of a stop to plain data. Plain data of an AggregateError has no members: a shutdown in it stays
 * recognisable.
 */
export function causeData(cause: unknown): ErrorData {
  const data = toErrorData(cause);
  if (!isShutdown(cause) || isShutdown(data)) return data;
  return toErrorData(new ShutdownError('the host is shutting down', { cause }));
}

/**
 * Decides by the finalize matrix what becomes of a run's record: complete it, fail it, or leave it for the next process.
 * Success wins. Otherwise only the *cause* of the stop (why the run's signal was aborted) can leave the record for the next
 * process: a shutdown, the end of a slice, or a run that waits or is parked. Every other error ends the run for good.
 *
 * @param error the error that ended the run; `undefined` or `null` = it succeeded
 * @param cause why the run was stopped from outside; `undefined` or `null` = it was not
 * @example classifyCheckpointOutcome(new Error('aborted'), new ShutdownError()) // 'leave-running'
 */
export function classifyCheckpointOutcome(error: unknown, cause: unknown): CheckpointOutcome {
  if (error === undefined || error === null) return 'complete';
  return isLeaving(cause) ? 'leave-running' : 'fail';
}

/** By the error's own code: a provider's CANCELLED deeper in its cause is not a cancel of the run. */
const statusByCode: ReadonlyMap<string, RunStatus> = new Map([
  ['LEASE_LOST', 'interrupted'],
  ['DEADLINE_EXCEEDED', 'timeout'],
  ['CANCELLED', 'cancelled'],
]);

/** Returns the status of a run for its outcome. Only a kill overrides the error that the run itself ended with. */
export function statusOf(
  outcome: CheckpointOutcome,
  error: ErrorData | undefined,
  cause: ErrorData | undefined,
): RunStatus {
  if (outcome === 'complete') return 'ok';
  if (outcome === 'leave-running') return cause?.code === 'RUN_WAITS' ? 'waiting' : 'interrupted';
  if (hasCode(cause, 'CRITIC_KILL')) return 'killed';
  return (error && statusByCode.get(error.code)) ?? 'error';
}
