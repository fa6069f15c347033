import type { Rested } from '../../../machines/context.ts';
import { stateOf } from '../../record/state.ts';
import { endAttempt } from '../../run/attempt.ts';
import { waitingText } from '../../run/outcome.ts';
import type { Progress } from '../../run/progress.ts';
import { earliest } from '../../run/waits/wait-rules.ts';
import type { LeaveOptions, RestingStore } from '../../store/due-port.ts';
import type { Claim } from '../../store/port.ts';
import { type Backoff, backoffMs, pause } from '../../values/backoff.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import { RunWaitsError } from '../../values/errors.ts';
import { programOf } from '../../workflow/program.ts';
import { restOf } from '../../workflow/view.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { forgetClaim } from '../run/record/acquire.ts';
import { isDriven } from '../run/slice.ts';
import { isRestable, unreadDueAt } from '../run/waits/rest-again.ts';

/** The pauses after a store that did not answer. */
const storeBackoff: Backoff = { firstMs: 250, maxMs: 30_000 };

/**
 * Leaves a run that waits to its store, where it rests without a process. Ends only when the store has it. A run that
 * cannot rest (it is not durable, a host's machine owns it, its store has no group `due`) stays here, and takes its answers
 * here. Never rejects.
 */
export async function rest(_: unknown, run: ActiveRun): Promise<Rested> {
  const { clock, defaults } = run.services.config;
  const { turn } = run.waits;
  const isWaiting = () => run.waits.turn === turn && run.actor.getSnapshot().hasTag('waiting') && !run.life.isOver;
  for (let failures = 0; mayRest(run) && isWaiting() && !run.signal.aborted; ) {
    const pauseMs =
      failures === 0 ? defaults.waitLingerMs : Math.max(defaults.waitLingerMs, backoffMs(failures, storeBackoff));
    // A run that was answered and has ended leaves no timer: it would keep a process alive that has nothing else to do.
    await pause(pauseMs, clock, run.signal);
    if (!isWaiting()) continue;
    const left = await tryToLeave(run, isWaiting, failures === 0);
    if (left === 'left') return { cause: toErrorData(new RunWaitsError(waitingFor(run))) };
    failures = left === 'failed' ? failures + 1 : 0;
  }
  return new Promise(() => {});
}

function waitingFor({ runId, agent, progress }: ActiveRun): string {
  const rest = progress && restOf(programOf(agent), progress);
  return waitingText(runId, progress?.waiting?.waits ?? [], rest?.text);
}

/** Returns whether a run can wait without a process: its store knows when it is due, and nothing else has to continue it. */
export function mayRest(run: ActiveRun): boolean {
  return run.resources.claim !== undefined && isRestable(run, run.progress) && isReadable(run);
}

/** A waiting call whose input is redacted in the record cannot be continued from there. */
function isReadable(run: ActiveRun): boolean {
  const { progress, redaction } = run;
  const step = progress?.openStep;
  if (!step || !redaction) return true;
  return step.calls.every(({ state, input }) => state !== 'waiting' || redaction.records.json(input) === input);
}

/** `kept`: the run has something to do first. `failed`: the store did not answer. */
type Leaving = 'left' | 'kept' | 'failed';

async function tryToLeave(run: ActiveRun, isWaiting: () => boolean, isFirst: boolean): Promise<Leaving> {
  const { services, runId } = run;
  const { inbox } = services;
  const { persisted, requested } = run.actor.getSnapshot().context;
  // The store gets to know a wait for an event once it is recorded: one that is recorded from here on is too late for this try.
  if (persisted < requested || !(await run.waits.tellStore())) return 'kept';
  await inbox.look();
  await inbox.settleDelivered(runId);
  const { context } = run.actor.getSnapshot();
  // A command that was seen and not taken is read again by each look: after one that failed it may be unread.
  if (inbox.hasFailed || inbox.isDelivering(runId)) return 'kept';
  // A wait that is due is ended here: a run that leaves before is due at once, and is taken up again.
  if ((context.progress.waiting?.wakeAt ?? Number.POSITIVE_INFINITY) <= services.config.clock.now()) return 'kept';
  if (!isWaiting() || context.persisted < context.requested || context.requested !== requested) return 'kept';
  const leaving = leave(run, context.progress, isFirst);
  await run.life.leave(leaving.then((left) => left === 'left'));
  return leaving;
}

/** Never rejects. @param isFirst whether a failure is news */
async function leave(run: ActiveRun, progress: Progress, isFirst: boolean): Promise<Leaving> {
  const { services, runId, claim } = run;
  if (!claim) return 'kept';
  try {
    const readUpTo = services.inbox.readUpTo(runId);
    const dueAt = await dueAtOf(run, progress);
    const state = stateOf({ ...endAttempt(progress, 'waited'), attempts: 0 }, run.nowOf(progress));
    await run.resources.checkpointer?.save(state, { force: true });
    const left = await give(run, claim, { readUpTo, attempts: 0, ...(dueAt === undefined ? {} : { dueAt }) });
    // The answer of `drive` says it of the run that is driven.
    if (left === 'left' && dueAt !== undefined && !run.slice) services.config.hints.tell(runId, dueAt);
    return left;
  } catch (error) {
    if (hasCode(error, 'LEASE_LOST')) run.loseLease(error);
    else if (isFirst) services.config.warn('run.suspend.failed', { runId, error });
    return 'failed';
  }
}

/** Gives the claim back. An answer of the store may be lost: then it is asked again, for as long as no other can have the run. */
async function give(run: ActiveRun, claim: Claim, options: LeaveOptions): Promise<Leaving> {
  const { leases, config } = run.services;
  const { clock, defaults } = config;
  const { due } = config.store as RestingStore;
  // The claim goes with the run: a renewal that finds none must not report a lost run.
  const since = leases.drop(run) ?? clock.monotonic();
  const isSure = () => clock.monotonic() - since < defaults.leaseMs;
  for (let failures = 0; ; ) {
    try {
      const isTaken = await due.leave(claim, options);
      if (isTaken) handOver(run);
      else keep(run, since);
      return isTaken ? 'left' : 'kept';
    } catch (error) {
      // Within its lease no other process can have taken the run: an earlier try succeeded without an answer.
      const hasLeft = failures > 0 && hasCode(error, 'LEASE_LOST') && isSure();
      if (hasLeft) handOver(run);
      if (hasLeft) return 'left';
      failures += 1;
      if (hasCode(error, 'LEASE_LOST') || !isSure() || run.services.isShutDown) {
        keep(run, since);
        throw error;
      }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, backoffMs(failures, storeBackoff)));
    }
  }
}

function keep(run: ActiveRun, since: number): void {
  run.keepLease(since);
}

/** When the run continues by itself. One with a command that it could not take looks again soon. */
async function dueAtOf(run: ActiveRun, { waiting, commands }: Progress): Promise<number | undefined> {
  const store = run.services.config.store as RestingStore;
  const sent = await store.commands.inbox({ runId: run.runId });
  const soon = unreadDueAt(
    sent.filter(({ command }) => !commands.includes(command.id)),
    run.services.config.clock.now(),
  );
  return earliest([waiting?.wakeAt, soon]);
}

/** From now on the record belongs to the next process that takes it up. */
function handOver(run: ActiveRun): void {
  run.life.giveAway();
  forgetClaim(run);
  // A driven run is the queue's, or the engine's.
  if (!isDriven(run)) run.services.sweep.begin();
}
