import type { Rested } from '../../../machines/context.ts';
import { stateOf } from '../../record/state.ts';
import type { Progress } from '../../run/progress.ts';
import type { Claim, DueStore } from '../../store/port.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import { RunWaitsError } from '../../values/errors.ts';
import { forgetClaim } from '../run/acquire.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { isRestable } from '../run/waits/rest-again.ts';

/**
 * Leaves a run that waits to its store, where it rests without a process. Ends only when the store has it. A run that
 * cannot rest (it is not durable, a host's machine owns it, its store has no `leave`) stays here, and takes its answers
 * here. Never rejects.
 */
export async function rest(_: unknown, run: ActiveRun): Promise<Rested> {
  const { clock, defaults } = run.services.config;
  const { turn } = run.waits;
  const isWaiting = () => run.waits.turn === turn && run.actor.getSnapshot().hasTag('waiting') && !run.life.isFinished;
  while (mayRest(run) && isWaiting()) {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, defaults.waitLingerMs));
    if (isWaiting() && (await hasLeft(run, isWaiting))) {
      return { cause: toErrorData(new RunWaitsError(`run ${run.runId} waits; it continues when a wait is over`)) };
    }
  }
  return new Promise(() => {});
}

function mayRest(run: ActiveRun): boolean {
  return run.resources.claim !== undefined && isRestable(run, run.progress) && isReadable(run);
}

/** A waiting call whose input is redacted in the record cannot be continued from there. */
function isReadable(run: ActiveRun): boolean {
  const { progress, redaction } = run;
  const step = progress?.openStep;
  if (!step || !redaction) return true;
  return step.calls.every(({ state, input }) => state !== 'waiting' || redaction.records.json(input) === input);
}

/** Whether the store took the run. Not if it has a command that the run has not read. */
async function hasLeft(run: ActiveRun, isWaiting: () => boolean): Promise<boolean> {
  const { services, runId } = run;
  const { inbox } = services;
  if (!(await run.waits.said())) return false;
  await inbox.look();
  await inbox.delivered(runId);
  const { context } = run.actor.getSnapshot();
  // A command that was seen and not taken is read again by each look: after one that failed it may be unread.
  if (inbox.hasFailed || !isWaiting() || context.persisted < context.requested) return false;
  const leaving = leave(run, context.progress);
  run.life.leaving = leaving;
  const left = await leaving;
  run.life.leaving = undefined;
  return left;
}

async function leave(run: ActiveRun, progress: Progress): Promise<boolean> {
  const { services, runId, claim } = run;
  const { leases, inbox, config } = services;
  const store = config.store as DueStore;
  if (!claim) return false;
  const readUpTo = inbox.readUpTo(runId);
  try {
    const state = stateOf({ ...progress, attempts: 0 }, run.nowOf(progress));
    await run.resources.checkpointer?.save(state, { force: true });
    // The claim goes with the run: a renewal that finds none must not report a lost run.
    const since = leases.drop(run);
    const wakeAt = progress.waiting?.wakeAt;
    const isTaken = await store.leave(claim, {
      readUpTo,
      attempts: 0,
      ...(wakeAt === undefined ? {} : { dueAt: wakeAt }),
    });
    if (!isTaken) keep(run, claim, since);
    else leftFor(run);
    return isTaken;
  } catch (error) {
    if (hasCode(error, 'LEASE_LOST')) run.loseLease(error);
    else {
      config.warn('run: the run could not rest; it tries again', { runId, error: toErrorData(error) });
      keep(run, claim, undefined);
    }
    return false;
  }
}

function keep(run: ActiveRun, claim: Claim, since: number | undefined): void {
  const { leases, config } = run.services;
  if (run.resources.claim === claim) leases.keep(run, since ?? config.clock.monotonic() - config.defaults.leaseMs);
}

/** From now on the record belongs to the next process that takes it up. */
function leftFor(run: ActiveRun): void {
  run.life.hasLeft = true;
  forgetClaim(run);
  run.services.sweep.begin();
}
