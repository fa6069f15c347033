import type { SettleInput } from '../../../machines/actors.ts';
import { endAttempt } from '../../run/attempt.ts';
import { isShutdown, statusOf } from '../../run/finalize.ts';
import { bornRunOf, outcomeIdOf } from '../../run/identity.ts';
import { outcomeOf, type RunEnd, waitingOutput } from '../../run/outcome.ts';
import type { Progress } from '../../run/progress.ts';
import { type RunOutcome, type RunOutput, withoutId } from '../../run/result.ts';
import { waitsOf } from '../../run/waits/wait-rules.ts';
import { withDeadline } from '../../values/deadline.ts';
import { type ErrorData, hasCode, toErrorData } from '../../values/error-data.ts';
import { RunPanicError } from '../../values/errors.ts';
import { programOf } from '../../workflow/program.ts';
import { restOf } from '../../workflow/view.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { tellParked } from '../run/oversight.ts';
import { forgetClaim, giveUpClaim, uncounted, withdraw } from '../run/record/acquire.ts';
import { endActiveRun } from '../run/record/end-run.ts';
import { finalizeCheckpoint } from '../run/record/finalize-checkpoint.ts';
import { isHandleSpared } from '../run/record/recording.ts';
import { leftByBudget, leftWithFault, pauseAgent } from '../run/record/setup-fault.ts';
import { sliceOf } from '../run/slice.ts';
import { forwardCancel } from '../run/waits/left-run.ts';
import { announceEnd, closeAudit, liveEnding, saveLeft } from './live-ending.ts';

/** Waits until no work of the run's end is running any more; may never resolve. */
export const settleAtLast = async (run: ActiveRun): Promise<void> => run.life.settledAtLast;

/**
 * Ends a run in this process: finalises its record, delivers its outcome, releases its claim, closes its audit. Its time is
 * bounded, the run's own abort does not affect it, and no failure changes the result.
 */
export function settle(input: SettleInput, run: ActiveRun): Promise<RunOutput> {
  const settling = settleRun(run, input);
  run.life.beginSettling(settling);
  return settling;
}

async function settleRun(run: ActiveRun, input: SettleInput): Promise<RunOutput> {
  const { clock, defaults, warn } = run.services.config;
  // The host sent an event to the machine itself while the store was asked to take the run.
  await run.life.leaving;
  if (run.life.hasLeft) {
    if (input.cause?.code === 'CANCELLED') await forwardCancel(run, input.cause.message);
    return waitingFor(run, input.progress);
  }
  const outcome = outcomeFor(run, input);
  try {
    const settling = record(run, input, outcome);
    run.life.keepSettling(settling);
    await withDeadline(settling, { ms: defaults.finalizeMs, clock, what: 'finalising' });
  } catch (error) {
    if (hasCode(error, 'LEASE_LOST')) return loseRun(run, outcome, error);
    const step = input.outcome === 'leave-running' ? 'save' : input.outcome;
    warn('checkpoint.close.failed', { runId: run.runId, step, error });
  }
  // Also if there was only an outcome to deliver, and the host did not accept it.
  void run.services.outlive(withdraw(run, input.progress.outcome && uncounted(run)));
  return isWaitingStop(run, input) ? waitingFor(run, input.progress) : outputOf(run, outcome);
}

function waitingFor({ agent, checkpointing: { saveErrors } }: ActiveRun, progress: Progress): RunOutput {
  return waitingOutput(progress, { saveErrors, rest: restOf(programOf(agent), progress)?.text });
}

/** A host may stop a run that waits, with the cause of one that rests: its record is left like that of any stopped run. */
function isWaitingStop({ isDurable }: ActiveRun, { outcome, error, cause, progress }: SettleInput): boolean {
  const hasWaits = (progress.waiting?.waits.length ?? 0) > 0;
  return isDurable && hasWaits && statusOf(outcome, error, cause) === 'waiting';
}

async function record(run: ActiveRun, input: SettleInput, outcome: RunOutcome): Promise<void> {
  run.life.close();
  if (input.outcome === 'leave-running') await leaveHere(run, input);
  else if (isHandleSpared(run, input.error))
    await saveLeft(run, endAttempt({ ...input.progress, attempts: 0 }, 'left'));
  else if (run.endFacts.isUnbegun) await takeOff(run, input, outcome);
  else {
    await end(run, input, outcome);
    run.endFacts.isDelivered = true;
  }
  await giveUpClaim(run);
  if (input.cause?.code === 'SETUP') pauseAgent(run);
  if (input.outcome === 'leave-running') tellLeft(run);
}

/** Its caller has the error, and may start it again under the same id: nothing of it is kept, also no outcome. */
async function takeOff(run: ActiveRun, { error, cause }: SettleInput, outcome: RunOutcome): Promise<void> {
  await closeAudit(run, outcome);
  await finalizeCheckpoint(run.resources.checkpointer, error, cause);
  forgetClaim(run);
}

/** A run that no process works on is due. A parent continues its child, and a host's machine its run; `drive` reports its own. */
function tellLeft({ slice, endFacts, parent, seed, isDurable, runId, services }: ActiveRun): void {
  const isOthers = slice !== undefined || parent !== undefined || seed.origin === 'hosted';
  if (isDurable && !isOthers && !endFacts.left?.parked) services.config.hints.tell(runId);
}

async function leaveHere(run: ActiveRun, { progress, cause }: SettleInput): Promise<void> {
  const left = leftBy(run, progress, cause);
  run.endFacts.left = left;
  await leaveLive(run, left, cause);
  if (left.parked) tellParked(run, left.parked, left);
  await run.journal?.flush();
}

function leftBy(run: ActiveRun, progress: Progress, cause: ErrorData | undefined): Progress {
  if (cause?.code === 'SETUP') return leftWithFault(run, progress);
  if (cause?.code === 'BUDGET_EXCEEDED') return leftByBudget(run, progress, cause);
  return run.slice?.left(progress) ?? { ...progress, attempts: 0 };
}

/**
 * Saves the newest state of a run that this process leaves unfinished, and says why.
 * @param progress a run that is left in good order has no attempts: it counts no failed start
 */
export async function leaveLive(run: ActiveRun, progress: Progress, cause: ErrorData | undefined): Promise<void> {
  run.life.close();
  if (cause) tellLeaving(run, progress, cause);
  await saveLeft(run, endAttempt(progress, isSliceOver(run, cause) ? 'slice' : 'left'));
}

/** Whether the run leaves because its slice has come to its end. */
function isSliceOver(run: ActiveRun, cause: ErrorData | undefined): boolean {
  return cause?.code === 'RUN_SLICED' && sliceOf(run)?.isEndedEarly !== true;
}

/**
 * Announces, with the save that leaves the run, why this process leaves it. A parking says that itself. A slice that is over says
 * nothing: another one follows, hundreds of times in a long run.
 */
function tellLeaving(run: ActiveRun, { parked }: Progress, cause: ErrorData): void {
  if (!run.isDurable || parked || isSliceOver(run, cause)) return;
  run.publish({ type: 'run.left', why: cause.code === 'RUN_SLICED' || isShutdown(cause) ? 'shutdown' : 'stop' });
}

/** A record that already has its outcome is only delivered: the same outcome, with the same id. */
function outcomeFor(run: ActiveRun, input: SettleInput): RunOutcome {
  if (input.progress.outcome) return input.progress.outcome;
  return outcomeOf(input.progress, endOf(input), {
    durable: run.isDurable,
    saveErrors: run.checkpointing.saveErrors,
    outcomeId: outcomeIdOf(bornRunOf(input.progress), run.resources.claim?.epoch),
  });
}

function endOf({ outcome, error, cause, data }: SettleInput): RunEnd {
  const known = statusOf(outcome, error, cause);
  // Only the effect `rest` makes a run wait, and no other code may say so.
  const status = known === 'waiting' ? 'interrupted' : known;
  if (status === 'ok') return { status, ...(data === undefined ? {} : { data }) };
  return { status, error: error ?? cause ?? toErrorData(new RunPanicError('the run failed without an error')) };
}

/** Another owner took the run over before its end was recorded here: that owner announces the end. */
function loseRun(run: ActiveRun, outcome: RunOutcome, error: unknown): RunOutput {
  run.loseLease(error);
  const { data: _, ...output } = outputOf(run, outcome);
  return { ...output, status: 'interrupted', error: toErrorData(error) };
}

function outputOf(run: ActiveRun, outcome: RunOutcome): RunOutput {
  return { ...withoutId(outcome), saveErrors: run.checkpointing.saveErrors };
}

/** The end of a live run. A run without a record is only announced. */
async function end(run: ActiveRun, input: SettleInput, outcome: RunOutcome): Promise<void> {
  const { checkpointer } = run.resources;
  run.waits.withdraw(waitsOf(input.progress));
  if (!checkpointer) return announceEnd(run, input.progress, outcome);
  const next = await endActiveRun(liveEnding(run, checkpointer, { input, outcome }));
  // The process of a slice may end with it.
  if (next && run.slice) run.services.config.hints.tell(next.runId);
  else if (next) void run.services.outlive(run.services.startTurn(next));
}
