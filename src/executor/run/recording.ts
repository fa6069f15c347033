import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { stateOf } from '../../record/state.ts';
import { isRewritten } from '../../record/upcast.ts';
import type { Progress } from '../../run/progress.ts';
import type { Transcript } from '../../run/transcript.ts';
import { storeFailure } from '../../store/checked-store.ts';
import { type Checkpointer, checkedCheckpointer, isTakenOver, noCheckpointer } from '../../store/checkpointer.ts';
import type { BeginOptions } from '../../store/factory.ts';
import { isOwning } from '../../store/port.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import { NotDurableError } from '../../values/errors.ts';
import type { Config } from '../host/config.ts';
import { askStore, releaseClaim, uncounted } from './acquire.ts';
import type { ActiveRun } from './active-run.ts';

/** null = this run is not durable. A run that is resumed, or must be durable, is refused instead. */
export async function checkpointerOf(
  run: ActiveRun,
  record: RunCheckpoint | undefined,
  resumed: { isResumed: boolean; isReplaced: boolean; transcript: Transcript },
): Promise<Checkpointer | null> {
  const { services, options, info, runId } = run;
  const { claim } = run.resources;
  const onFlushError = (error: unknown) => run.checkpointing.flushFailed(error);
  const { factory, requireDurable, warn } = services.config;
  if (options.checkpointer) return checkedCheckpointer(options.checkpointer);
  const { isResumed } = resumed;
  const transcript = run.redaction?.records.transcript(resumed.transcript) ?? resumed.transcript;
  const landed = record && landedOf(record, { ...resumed, transcript });
  const shown = info && (run.redaction?.info(info, 'record') ?? info);
  try {
    const begun =
      factory && shown
        ? await askStore(run, 'checkpointer begin', factory.begin(shown, { claim, landed, onFlushError }))
        : null;
    if (begun && begun !== noCheckpointer) return checkedCheckpointer(begun);
    if (requireDurable) throw new NotDurableError(`run ${runId} has no checkpointer, and requireDurable is set`);
    if (record) throw new NotDurableError(`run ${runId} has a record, and the factory gives no checkpointer for it`);
    await releaseClaim(run, uncounted(run));
    return null;
  } catch (error) {
    return refuseOrGoOn(run, error, { mustBeDurable: isResumed || isNeeded(run), warn });
  }
}

/** A durable run makes its calls again after a crash: whom it puts to work must be found then. */
function isNeeded({ services, seed }: ActiveRun): boolean {
  const parent = seed.request.parent && services.registry.live(seed.request.parent.runId);
  return services.config.requireDurable || (parent?.isDurable ?? false);
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
  // What may be left of it is kept from others as long as this run makes its calls, and removed at its end.
  run.resources.hasLeftover = policy.isLeft ?? false;
  if (!run.resources.hasLeftover) await releaseClaim(run, uncounted(run));
  policy.warn('run: checkpointer begin failed; running non-durable', { runId: run.runId, error: toErrorData(error) });
  return null;
}

/** What the store holds, and whether the run that goes on continues it. Between two phases it holds no messages. */
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

/** The first record of a new run; of a resumed one only where nothing else has counted this start. */
export async function firstSave(run: ActiveRun, progress: Progress, record: RunCheckpoint | undefined): Promise<void> {
  const { services, options } = run;
  const { checkpointer } = run.resources;
  const { store, warn } = services.config;
  const isCounted = record !== undefined && store !== undefined && isOwning(store);
  if (!checkpointer || isCounted || (options.checkpointer && options.resume)) return;
  try {
    const save = checkpointer.save(stateOf(progress, run.nowOf(progress)), { force: true });
    await askStore(run, 'checkpointer.save', save);
    if (services.config.requireDurable && !run.isDurable) {
      throw new NotDurableError(`run ${run.runId} is not stored from its start on, and requireDurable is set`);
    }
  } catch (error) {
    run.resources.checkpointer = null;
    // A request that no record can hold is refused: nothing would recover the run.
    if (hasCode(error, 'RECORD_TOO_LARGE') && progress.earlier.value.length > 0) throw error;
    // It may have landed all the same: a record that nobody writes any more would be recovered as a second run.
    const isLeft = !record && !isTakenOver(error) && !(await isTakenBack(run, checkpointer, error));
    await refuseOrGoOn(run, error, { mustBeDurable: record !== undefined || isNeeded(run), isLeft, warn });
  }
}

async function isTakenBack(run: ActiveRun, checkpointer: Checkpointer, error: unknown): Promise<boolean> {
  // With the record its claim goes: a renewal that finds none must not say that somebody has the run.
  const { leases } = run.services;
  const since = leases.drop(run);
  try {
    await askStore(run, 'checkpointer.fail', checkpointer.fail(error));
    return true;
  } catch {
    // The store refuses this as well; why was said before.
    if (since !== undefined) leases.keep(run, since);
    return false;
  }
}
