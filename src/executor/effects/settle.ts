import type { SettleInput } from '../../../machines/actors.ts';
import { fingerprintIn } from '../../record/identify.ts';
import { stateOf } from '../../record/state.ts';
import { isShutdown, statusOf } from '../../run/finalize.ts';
import { bornRunOf, outcomeIdOf } from '../../run/identity.ts';
import { keptOutcome, outcomeOf, type RunEnd, waitingOutput } from '../../run/outcome.ts';
import { recordable } from '../../run/pipeline.ts';
import type { Progress } from '../../run/progress.ts';
import { type RunOutcome, type RunOutput, withoutId } from '../../run/result.ts';
import { waitsOf, withdrawWaits } from '../../run/waits/wait-rules.ts';
import { type Checkpointer, keeperOf } from '../../store/checkpointer.ts';
import type { Claim, Ended, EndOptions } from '../../store/port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { withDeadline } from '../../values/deadline.ts';
import { type ErrorData, hasCode, hasTrait, toErrorData } from '../../values/error-data.ts';
import { RunPanicError } from '../../values/errors.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { tellParked } from '../run/oversight.ts';
import { forgetClaim, releaseClaim, uncounted, withdraw } from '../run/record/acquire.ts';
import { unbegunIn } from '../run/record/earlier-end.ts';
import { endRun } from '../run/record/end-run.ts';
import { finalizeCheckpoint } from '../run/record/finalize-checkpoint.ts';
import { isHandleSpared } from '../run/record/recording.ts';
import { leftByBudget, leftWithFault, pauseAgent } from '../run/record/setup-fault.ts';
import { sliceOf } from '../run/slice.ts';
import { isRefused, liveTurnEndOf, withTurnOf } from '../run/threads/thread-turn.ts';
import { isAwaitedHere, openChildren, tellParent } from '../run/waits/child-end.ts';
import { forwardCancel } from '../run/waits/left-run.ts';

/** How many times a refused save of the outcome is repeated, and the waits before. */
const OUTCOME_RETRIES = 3;
const backoff: Backoff = { firstMs: 50, factor: 4, maxMs: 750 };

/** Waits until no work of the run's end is running any more; may never resolve. */
export const settledAtLast = async (run: ActiveRun): Promise<void> => run.life.settledAtLast;

/**
 * Ends a run in this process: finalises its record, delivers its outcome, releases its claim, closes its audit. Its time is
 * bounded, the run's own abort does not affect it, and no failure changes the result.
 */
export function settle(input: SettleInput, run: ActiveRun): Promise<RunOutput> {
  const settling = settled(run, input);
  run.life.beginSettling(settling);
  return settling;
}

async function settled(run: ActiveRun, input: SettleInput): Promise<RunOutput> {
  const { clock, defaults, warn } = run.services.config;
  // The host sent an event to the machine itself while the store was asked to take the run.
  await run.life.leaving;
  if (run.life.hasLeft) {
    if (input.cause?.code === 'CANCELLED') await forwardCancel(run, input.cause.message);
    return waitingOutput(input.progress, run.checkpointing.saveErrors);
  }
  const outcome = outcomeFor(run, input);
  try {
    const settling = record(run, input, outcome);
    run.life.keepSettling(settling);
    await withDeadline(settling, { ms: defaults.finalizeMs, clock, what: 'finalising' });
  } catch (error) {
    if (hasCode(error, 'LEASE_LOST')) return lost(run, outcome, error);
    const step = input.outcome === 'leave-running' ? 'save' : input.outcome;
    warn(`run: checkpoint ${step} failed`, { runId: run.runId, error: toErrorData(error) });
  }
  // Also if there was only an outcome to deliver, and the host did not accept it.
  void run.services.outlive(withdraw(run, input.progress.outcome && uncounted(run)));
  return isWaitingStop(run, input)
    ? waitingOutput(input.progress, run.checkpointing.saveErrors)
    : outputOf(run, outcome);
}

/** A host may stop a run that waits, with the cause of one that rests: its record is left like that of any stopped run. */
function isWaitingStop({ isDurable }: ActiveRun, { outcome, error, cause, progress }: SettleInput): boolean {
  const hasWaits = (progress.waiting?.waits.length ?? 0) > 0;
  return isDurable && hasWaits && statusOf(outcome, error, cause) === 'waiting';
}

async function record(run: ActiveRun, input: SettleInput, outcome: RunOutcome): Promise<void> {
  run.life.close();
  if (input.outcome === 'leave-running') await leaveHere(run, input);
  else if (isHandleSpared(run, input.error)) await leave(run, { ...input.progress, attempts: 0 }, undefined);
  else if (run.endFacts.isUnbegun) await takeOff(run, input, outcome);
  else {
    await end(run, input, outcome);
    run.endFacts.isDelivered = true;
  }
  await releaseClaim(run);
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
  await leave(run, left, cause);
  if (left.parked) tellParked(run, left.parked);
  await run.journal?.flush();
}

function leftBy(run: ActiveRun, progress: Progress, cause: ErrorData | undefined): Progress {
  if (cause?.code === 'SETUP') return leftWithFault(run, progress);
  if (cause?.code === 'BUDGET_EXCEEDED') return leftByBudget(run, progress, cause);
  return run.slice?.left(progress) ?? { ...progress, attempts: 0 };
}

/**
 * Announces, with the save that leaves the run, why this process leaves it. A parking says that itself. A slice that is over says
 * nothing: another one follows, hundreds of times in a long run.
 */
function tellLeaving(run: ActiveRun, { parked }: Progress, cause: ErrorData): void {
  const isSlice = cause.code === 'RUN_SLICED';
  const isSliceOver = isSlice && sliceOf(run)?.isEndedEarly !== true;
  if (!run.isDurable || parked || isSliceOver) return;
  run.publish({ type: 'run.left', why: isSlice || isShutdown(cause) ? 'shutdown' : 'stop' });
}

/** Removes what the first save of a run that is not durable may have left: no process may continue it. */
async function takeBack(run: ActiveRun, claim: Claim | undefined): Promise<void> {
  const { store, clock, defaults } = run.services.config;
  if (!store || !run.resources.hasLeftover || run.life.isLost) return;
  // Within its lease no other process can have taken it: then an earlier delete succeeded without an answer.
  const isSure = run.services.leases.isFresh(run);
  // The claim is deleted with the record: a renewal that finds none must not report a lost run.
  forgetClaim(run);
  const limit = { ms: defaults.finalizeMs / 2, clock, what: 'store.delete' };
  await withDeadline(store.delete(run.runId, { claim }), limit).catch((error) => {
    if (!isSure || !hasCode(error, 'LEASE_LOST')) throw error;
  });
  run.resources.hasLeftover = false;
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
function lost(run: ActiveRun, outcome: RunOutcome, error: unknown): RunOutput {
  run.loseLease(error);
  const { data: _, ...output } = outputOf(run, outcome);
  return { ...output, status: 'interrupted', error: toErrorData(error) };
}

function outputOf(run: ActiveRun, outcome: RunOutcome): RunOutput {
  return { ...withoutId(outcome), saveErrors: run.checkpointing.saveErrors };
}

/** The end of a live run. A run without a record is only announced. */
async function end(run: ActiveRun, input: SettleInput, outcome: RunOutcome): Promise<void> {
  const { checkpointer, claim } = run.resources;
  const { progress, error, cause } = input;
  run.waits.withdraw(waitsOf(progress));
  const kept = run.redaction?.records.outcome(outcome) ?? outcome;
  const keeper = checkpointer ? keeperOf(checkpointer) : undefined;
  const finish = async (finalizer: Checkpointer) => {
    await finalizeCheckpoint(finalizer, error, cause);
    forgetClaim(run);
  };
  const stored = checkpointer && {
    claim,
    outcome: { ...kept, ...fingerprintIn(progress) },
    ...unbegunIn(progress, outcome),
    record: progress.outcome ? undefined : () => recordOutcome(run, progress, outcome),
    closeAudit: () => closeAudit(run, outcome),
    endChildren: () => endChildren(run, progress),
    tellParent: async () => {
      const { agent, parent, runId } = run;
      if (parent && !isAwaitedHere(run))
        await tellParent(run.services, { runId, parent, agentId: agent.id, outcome: kept, treeRuns: run.tree.runs });
    },
    waits: progress.waiting?.waits,
    turn: liveTurnEndOf(run, progress, outcome),
    identity: () => ({
      ...(run.redaction?.records.progress(recordable(progress)) ?? progress),
      elapsedMs: Math.round(run.nowOf(progress).elapsedMs),
    }),
    end: keeper && ((options: EndOptions) => ended(checkpointer, { keeper, options, finish })),
    remove: () => finish(checkpointer),
  };
  const announce = () => announced(run, progress, outcome);
  const next = await endRun(run.services.config, {
    runId: run.runId,
    agentId: run.agent.id,
    announce,
    stored: stored ?? undefined,
  });
  // The process of a slice may end with it.
  if (next && run.slice) run.services.config.hints.tell(next.runId);
  else if (next) void run.services.outlive(run.services.startTurn(next));
}

interface Ending {
  readonly keeper: (options: EndOptions) => Promise<Ended>;
  readonly options: EndOptions;
  readonly finish: (finalizer: Checkpointer) => Promise<void>;
}

/** Both ways to finalise a record end it so that it is kept. */
async function ended(checkpointer: Checkpointer, { keeper, options, finish }: Ending): Promise<Ended> {
  let answer: Ended = {};
  const end = async () => {
    answer = await keeper(options);
  };
  await finish({ save: (state, how) => checkpointer.save(state, how), complete: end, fail: end });
  return answer;
}

/** A live child of a running call follows the signal of its parent; one that leaves just now may miss it. */
async function endChildren({ services, resources }: ActiveRun, progress: Progress): Promise<void> {
  for (const childRunId of openChildren(progress)) {
    const child = services.registry.live(childRunId);
    const isCalled = child && (child.seed.origin === 'child' || resources.children.has(child));
    if (!isCalled || child.life.leaving || child.life.hasLeft) await services.endChild(childRunId);
  }
}

async function announced(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { claim } = run.resources;
  // Before the host gets the outcome: the remains may be another process's run by now, or become one during the host's
  // callback.
  await takeBack(run, claim).catch((error) => {
    if (hasCode(error, 'LEASE_LOST')) throw error;
  });
  run.checkOurs();
  try {
    if (run.life.mayAnnounce) await deliver(run, progress, outcome);
  } finally {
    // The host has the outcome: later failures of the claim change no result.
    await takeBack(run, claim).catch((error) => {
      if (!hasCode(error, 'LEASE_LOST')) throw error;
    });
  }
}

/**
 * Delivers the outcome of a run to the host's `onOutcome`.
 * @throws if the host did not accept it: then its end is kept as undelivered, or its record stays
 */
async function deliver(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { onOutcome, warn } = run.services.config;
  try {
    await onOutcome?.(outcome);
  } catch (error) {
    warn('run: onOutcome failed', { runId: run.runId, error: toErrorData(error) });
    // Without a claim the record counts the starts. This start did not fail, so its process did not die of the run. A store that
    // keeps which ends are delivered ends the run all the same.
    if (progress.outcome && !run.resources.claim) await leave(run, { ...progress, attempts: 0 }, undefined);
    throw error;
  }
}

/** An audit that does not answer may take half of the remaining time: the record must be deleted as well. */
async function closeAudit(run: ActiveRun, outcome: RunOutcome): Promise<void> {
  const { clock, defaults } = run.services.config;
  const closing = run.closeAudit(outputOf(run, outcome));
  if (!closing) return;
  const limit = { ms: defaults.finalizeMs / 2, clock, what: 'audit close' };
  await withDeadline(closing, limit).catch(() => {});
}

/**
 * Retries a refused save for a second: the outcome must be durable before the host gets it.
 * @throws the store's error: then nothing is delivered, and the record stays for the next start
 */
async function recordOutcome(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { clock, defaults } = run.services.config;
  const latest = clock.monotonic() + defaults.finalizeMs;
  const kept = keptOutcome(outcome);
  const refused = isRefused(run, progress, outcome) ? { refused: progress.refused ?? (true as const) } : {};
  const ended = withTurnOf({ ...withdrawWaits(progress), ...refused, outcome: kept });
  const state = stateOf(ended, run.nowOf(ended));
  for (let tries = 0; ; tries++) {
    run.checkOurs();
    try {
      return await run.resources.checkpointer?.save(state, { force: true });
    } catch (error) {
      if (hasCode(error, 'LEASE_LOST')) throw error;
      if (tries === 0) run.checkpointing.saveErrors += 1;
      if (hasTrait(error, 'isUnstorable')) throw error;
      const wait = backoffMs(tries + 1, backoff);
      // The end may not wait longer than that; a timer would keep the process alive.
      if (tries >= OUTCOME_RETRIES || clock.monotonic() + wait >= latest) throw error;
      await new Promise<void>((resolve) => clock.setTimeout(resolve, wait));
    }
  }
}

/**
 * Saves the newest state of a run that this process leaves unfinished, past the throttle.
 * @param progress a run that is left in good order has no attempts: it counts no failed start @param cause why it is left; undefined:
 *   it has ended
 */
export async function leave(run: ActiveRun, progress: Progress, cause: ErrorData | undefined): Promise<void> {
  run.life.close();
  if (cause) tellLeaving(run, progress, cause);
  const { claim } = run;
  await run.resources.checkpointer?.save(stateOf(progress, run.nowOf(progress)), { force: true });
  await takeBack(run, claim);
}
