import type { SettleInput } from '../../../machines/actors.ts';
import { fingerprintIn, outcomeOwnerOf } from '../../record/identify.ts';
import { stateOf } from '../../record/state.ts';
import { usedBefore } from '../../run/attempt.ts';
import { keptOutcome } from '../../run/outcome.ts';
import { recordable } from '../../run/pipeline.ts';
import type { Progress } from '../../run/progress.ts';
import { type OutcomeOwner, type RunOutcome, withoutId } from '../../run/result.ts';
import { withdrawWaits } from '../../run/waits/wait-rules.ts';
import { outboxOf } from '../../run/workflow/advanced.ts';
import { type Checkpointer, keeperOf } from '../../store/checkpointer.ts';
import type { Claim } from '../../store/port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode, hasTrait } from '../../values/error-data.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { sendRecorded } from '../run/outbox.ts';
import { forgetClaim } from '../run/record/acquire.ts';
import { unbegunIn } from '../run/record/earlier-end.ts';
import type { Ending } from '../run/record/end-run.ts';
import { finalizeCheckpoint } from '../run/record/finalize-checkpoint.ts';
import { isRefused, liveTurnEndOf, withTurnOf } from '../run/threads/thread-turn.ts';
import { isAwaitedHere, openChildren } from '../run/waits/child-end.ts';
import { noticeUndelivered } from '../services/deliveries.ts';

/** How many times a refused save of the outcome is repeated, and the waits before. */
const OUTCOME_RETRIES = 3;
const backoff: Backoff = { firstMs: 50, factor: 4, maxMs: 750 };

interface LiveEnd {
  readonly input: SettleInput;
  /** As the host gets it. */
  readonly outcome: RunOutcome;
}

/** Returns the end of a run that is live here, and has a record. */
export function liveEnding(run: ActiveRun, checkpointer: Checkpointer, { input, outcome }: LiveEnd): Ending {
  const { progress, error, cause } = input;
  const kept = run.redaction?.records.outcome(outcome) ?? outcome;
  const keeper = keeperOf(checkpointer);
  const withoutClaim = <T>(answer: T): T => {
    forgetClaim(run);
    return answer;
  };
  return {
    services: run.services,
    runId: run.runId,
    agentId: run.agent.id,
    claim: run.resources.claim,
    outcome: { ...kept, ...fingerprintIn(progress), ...unbegunIn(progress, outcome) },
    isRepeated: progress.outcome !== undefined,
    waits: progress.waiting?.waits,
    counted: usedBefore(progress),
    turn: liveTurnEndOf(run, progress, outcome),
    // A call of a live parent reads the end by itself.
    parent: () => (isAwaitedHere(run) ? undefined : run.parent),
    treeRuns: () => run.tree.runs,
    owner: () => ownerOf(run, progress),
    storeOutcome: () => storeOutcome(run, progress, outcome),
    deliver: () => announceEnd(run, progress, outcome),
    closeAudit: () => closeAudit(run, outcome),
    sendMessages: () => sendRecorded(run.services, outboxOf(progress)),
    cancelChildren: () => cancelChildren(run, progress),
    keepRecord: keeper && ((options) => keeper(options).then(withoutClaim)),
    deleteRecord: () => finalizeCheckpoint(checkpointer, error, cause).then(withoutClaim),
  };
}

function ownerOf(run: ActiveRun, progress: Progress): OutcomeOwner {
  const shown = run.redaction?.records.progress(recordable(progress)) ?? progress;
  return outcomeOwnerOf({ ...shown, elapsedMs: Math.round(run.nowOf(progress).elapsedMs) });
}

/**
 * Retries a refused save for a second: the outcome must be durable before the host gets it.
 * @throws the store's error: then nothing is delivered, and the record stays for the next start
 */
async function storeOutcome(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { clock, defaults } = run.services.config;
  const latest = clock.monotonic() + defaults.finalizeMs;
  const refused = isRefused(run, progress, outcome) ? { refused: progress.refused ?? (true as const) } : {};
  const ended = withTurnOf({ ...withdrawWaits(progress), ...refused, outcome: keptOutcome(outcome) });
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

/** A live child of a running call follows the signal of its parent; one that leaves just now may miss it. */
async function cancelChildren({ services, resources }: ActiveRun, progress: Progress): Promise<void> {
  for (const childRunId of openChildren(progress)) {
    const child = services.registry.live(childRunId);
    const isCalled = child && (child.seed.origin === 'child' || resources.children.has(child));
    if (!isCalled || child.life.leaving || child.life.hasLeft) await services.endChild(childRunId);
  }
}

/**
 * Passes the outcome of a live run to the host, as long as this process may announce it.
 * @throws {LEASE_LOST} @throws if the host did not accept it: then its end is kept as undelivered, or its record stays
 */
export async function announceEnd(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { claim } = run.resources;
  // Before the host gets the outcome: the remains may be another process's run by now, or become one during the host's
  // callback.
  await removeLeftover(run, claim).catch((error) => {
    if (hasCode(error, 'LEASE_LOST')) throw error;
  });
  run.checkOurs();
  try {
    if (run.life.mayAnnounce) await deliver(run, progress, outcome);
  } finally {
    // The host has the outcome: later failures of the claim change no result.
    await removeLeftover(run, claim).catch((error) => {
      if (!hasCode(error, 'LEASE_LOST')) throw error;
    });
  }
}

async function deliver(run: ActiveRun, progress: Progress, outcome: RunOutcome): Promise<void> {
  const { onOutcome, warn } = run.services.config;
  try {
    await onOutcome?.(outcome);
  } catch (error) {
    warn('outcome.delivery.failed', { runId: run.runId, error });
    noticeUndelivered(run.services.config, outcome);
    // Without a claim the record counts the starts. This start did not fail, so its process did not die of the run. A store that
    // keeps which ends are delivered ends the run all the same.
    if (progress.outcome && !run.resources.claim) await saveLeft(run, { ...progress, attempts: 0 });
    throw error;
  }
}

/** Saves the newest state of a run that this process leaves, past the throttle. */
export async function saveLeft(run: ActiveRun, progress: Progress): Promise<void> {
  const { claim } = run;
  await run.resources.checkpointer?.save(stateOf(progress, run.nowOf(progress)), { force: true });
  await removeLeftover(run, claim);
}

/** Removes what the first save of a run that is not durable may have left: no process may continue it. */
async function removeLeftover(run: ActiveRun, claim: Claim | undefined): Promise<void> {
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

/** An audit that does not answer may take half of the remaining time: the record must be deleted as well. */
export async function closeAudit(run: ActiveRun, outcome: RunOutcome): Promise<void> {
  const { clock, defaults } = run.services.config;
  const closing = run.closeAudit({ ...withoutId(outcome), saveErrors: run.checkpointing.saveErrors });
  if (!closing) return;
  const limit = { ms: defaults.finalizeMs / 2, clock, what: 'audit close' };
  await withDeadline(closing, limit).catch(() => {});
}
