import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { stateOf } from '../../../record/state.ts';
import { isRewritten } from '../../../record/upcast.ts';
import type { Progress } from '../../../run/progress.ts';
import type { Transcript } from '../../../run/transcript.ts';
import { isOwning } from '../../../store/capabilities.ts';
import { storeFailure } from '../../../store/checked-store.ts';
import { type Checkpointer, checkedCheckpointer, isTakenOver, noCheckpointer } from '../../../store/checkpointer.ts';
import type { BeginOptions } from '../../../store/factory.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { type ErrorData, hasCode, hasTrait } from '../../../values/error-data.ts';
import { NotDurableError } from '../../../values/errors.ts';
import type { Config } from '../../host/config.ts';
import type { ActiveRun } from '../active-run.ts';
import { fairKeyOf, infoOf, limitsOfRun } from '../run-info.ts';
import { giveUpClaim, uncounted } from './acquire.ts';
import { finalizeCheckpoint } from './finalize-checkpoint.ts';

/** Bounds a call of a checkpointer in time. */
function askCheckpointer<T>(run: ActiveRun, what: string, answer: Promise<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  return withDeadline(answer, { ms: defaults.portMs, clock, what });
}

/**
 * Returns whether a start was refused because its store was away. A timeout after the store has answered, and the run is known,
 * may be that of a budget's check.
 */
export function isStoreRefusal({ info }: ActiveRun, error: ErrorData | undefined): boolean {
  return (error?.code === 'NOT_DURABLE' || info === undefined) && hasTrait(error, 'isStoreAway');
}

/**
 * Makes the checkpointer that records a run; null if the run is not durable. A resumed run, or one that must be durable, is
 * refused instead.
 */
export async function checkpointerOf(
  run: ActiveRun,
  record: RunCheckpoint | undefined,
  resumed: { isResumed: boolean; isReplaced: boolean; transcript: Transcript },
): Promise<Checkpointer | null> {
  const { services, options, info, runId } = run;
  const { claim } = run.resources;
  const onFlushError = (error: unknown) => run.checkpointing.flushFailed(error);
  const { factory, requireDurable, warn } = services.config;
  run.resources.isCheckpointerMade = true;
  if (options.checkpointer) return checkedCheckpointer(options.checkpointer);
  const { isResumed } = resumed;
  const transcript = run.redaction?.records.transcript(resumed.transcript) ?? resumed.transcript;
  const landed = record && landedOf(record, { ...resumed, transcript });
  const fairKey = record ? undefined : fairKeyOf(services.config, info?.labels);
  const shown = info && (run.redaction?.info(info, 'record') ?? info);
  try {
    const begun =
      factory && shown
        ? await askCheckpointer(
            run,
            'checkpointer begin',
            factory.begin(shown, { claim, landed, onFlushError, fairKey }),
          )
        : null;
    if (begun && begun !== noCheckpointer) return checkedCheckpointer(begun);
    if (requireDurable) throw new NotDurableError(`run ${runId} has no checkpointer, and requireDurable is set`);
    if (run.seed.isAdmission)
      throw new NotDurableError(`run ${runId} has no checkpointer, and drive: 'later' needs one`);
    if (record) throw new NotDurableError(`run ${runId} has a record, and the factory gives no checkpointer for it`);
    await giveUpClaim(run, uncounted(run));
    return null;
  } catch (error) {
    return refuseOrGoOn(run, error, { mustBeDurable: isResumed || isNeeded(run), warn });
  }
}

/** A durable run repeats its calls after a crash: then its children must be found. */
function isNeeded({ services, seed }: ActiveRun): boolean {
  const parent = seed.request.parent && services.registry.live(seed.request.parent.runId);
  return services.config.requireDurable || seed.isAdmission === true || (parent?.isDurable ?? false);
}

async function refuseOrGoOn(
  run: ActiveRun,
  thrown: unknown,
  policy: { mustBeDurable: boolean; isLeft?: boolean; warn: Config['warn'] },
): Promise<null> {
  if (isTakenOver(thrown)) throw thrown;
  const error = storeFailure('checkpointer', thrown);
  if (policy.mustBeDurable) {
    if (hasCode(error, 'NOT_DURABLE')) throw error;
    throw new NotDurableError(`run ${run.runId} cannot be recorded`, { cause: error });
  }
  // Its possible remains are kept from other processes as long as this run makes calls, and removed at its end.
  run.resources.hasLeftover = policy.isLeft ?? false;
  if (!run.resources.hasLeftover) await giveUpClaim(run, uncounted(run));
  policy.warn('checkpoint.begin.failed', {
    runId: run.runId,
    error,
  });
  return null;
}

/** The stored state, and whether the resumed run continues it. Between two phases it holds no messages. */
function landedOf(
  record: RunCheckpoint,
  { isReplaced, transcript }: { isReplaced: boolean; transcript: Transcript },
): BeginOptions['landed'] {
  const { revision = 0, messages } = record;
  if (isRewritten(record)) return { revision, messages: messages.length, isReplaced: true };
  const isSame = !isReplaced && transcript.length === messages.length;
  const origin = isSame ? transcript : undefined;
  return { revision, messages: messages.length, origin, isReplaced: !isSame && messages.length > 0 };
}

/** Saves the first record of a new run; of a resumed run only if no claim has counted this start. */
export async function firstSave(run: ActiveRun, progress: Progress, record: RunCheckpoint | undefined): Promise<void> {
  const { services, options } = run;
  const { checkpointer } = run.resources;
  const { store, warn } = services.config;
  const isCounted = record !== undefined && store !== undefined && isOwning(store);
  if (!checkpointer || isCounted || (options.checkpointer && options.resume)) return;
  try {
    const save = checkpointer.save(stateOf(progress, run.nowOf(progress)), { force: true });
    await askCheckpointer(run, 'checkpointer.save', save);
    if ((services.config.requireDurable || run.seed.isAdmission) && !run.isDurable) {
      const why = services.config.requireDurable ? 'requireDurable is set' : "drive: 'later' needs its record";
      throw new NotDurableError(`run ${run.runId} is not stored from its start on, and ${why}`);
    }
  } catch (error) {
    run.resources.checkpointer = null;
    // A request that no record can hold is refused: no process could recover the run.
    if (hasCode(error, 'RECORD_TOO_LARGE')) throw error;
    // The save may have succeeded without an answer: an abandoned record would be recovered as a second run.
    const isLeft = !record && !isTakenOver(error) && !(await isTakenBack(run, checkpointer, error));
    await refuseOrGoOn(run, error, { mustBeDurable: record !== undefined || isNeeded(run), isLeft, warn });
  }
}

async function isTakenBack(run: ActiveRun, checkpointer: Checkpointer, error: unknown): Promise<boolean> {
  // The claim is deleted with the record: a renewal that finds none must not report another owner.
  const { leases } = run.services;
  const since = leases.drop(run);
  try {
    await askCheckpointer(run, 'checkpointer.fail', checkpointer.fail(error));
    return true;
  } catch {
    // The store refuses this as well; the reason was logged before.
    if (since !== undefined) leases.keep(run, since);
    return false;
  }
}

/** Returns whether the host recovers the run itself: by a checkpointer of the start, or by a factory whose store is its own. */
export function hasOwnHandle({ options, services: { config } }: ActiveRun): boolean {
  return options.checkpointer !== undefined || (config.factory !== undefined && !config.store);
}

/** A start that these refuse has not touched its run: the host may resume it, or another start of the same id has it. */
const sparing: ReadonlySet<string> = new Set(['BUDGET_EXCEEDED', 'DEFINITION_CHANGED', 'RUN_ID_CONFLICT']);

/**
 * Finalises the host's own handle of a run whose start was refused: the host recovers that run, and must learn of each exit. A
 * factory is asked for the handle, if no part of the start has asked it. Never rejects.
 * @returns the error of the start; it says so where the handle is left alone
 */
export async function finalizeHandle(run: ActiveRun, progress: Progress, error: ErrorData): Promise<ErrorData> {
  const { checkpointer, isCheckpointerMade } = run.resources;
  if (!hasOwnHandle(run)) return error;
  if (sparing.has(error.code)) return sparingHandle(error);
  try {
    const handle = isCheckpointerMade ? checkpointer : await openHandle(run, progress);
    const finalizing = finalizeCheckpoint(handle, error, run.signal.reason);
    await askCheckpointer(run, 'checkpointer.fail', finalizing);
  } catch (thrown) {
    run.services.config.warn('checkpoint.close.failed', {
      runId: run.runId,
      step: 'fail',
      error: thrown,
    });
  }
  return error;
}

/** Returns an error that leaves the host's own handle alone, and says so. */
export function sparingHandle(error: ErrorData): ErrorData {
  return { ...error, message: `${error.message}; the checkpointer of this start is left as it is` };
}

/** Returns whether the end of a run leaves the host's own handle alone: the budget refused a call, and the host may resume the run. */
export function isHandleSpared(run: ActiveRun, error: ErrorData | undefined): boolean {
  const isRefused = error?.code === 'BUDGET_EXCEEDED' && run.services.config.onBudgetExceeded === 'park';
  return isRefused && hasOwnHandle(run);
}

async function openHandle(run: ActiveRun, progress: Progress): Promise<Checkpointer | null> {
  const { options, services, seed } = run;
  if (options.checkpointer) return checkedCheckpointer(options.checkpointer);
  // A new run has none yet. The id of an invocation that is refused was made up: no run of the host has it.
  if (!(options.resume || seed.persisted) || (seed.refusal && seed.isNewId)) return null;
  const info = run.info ?? infoOf(run, progress, limitsOfRun(run));
  const shown = run.redaction?.info(info, 'record') ?? info;
  const begun = await askCheckpointer(run, 'checkpointer begin', (async () => services.config.factory?.begin(shown))());
  return begun ? checkedCheckpointer(begun) : null;
}
