import type { ExecutorServices } from '../../run/active-run.ts';
import type { TakenClaim } from '../../services/due/taken-claim.ts';

/** A process that is known to be unable gives a run back for this time, so that another one takes it, ms. */
const SHORT_PAUSE_MS = 2_000;

/**
 * Gives back a run that this process cannot continue. It is due for all processes after half of the pause: in the other half this
 * one gives it back at once.
 */
export async function giveBack({ stuck }: ExecutorServices, taken: TakenClaim): Promise<void> {
  const { run } = taken;
  const leftMs = stuck.leftMs(run);
  const pauseMs = leftMs > 0 ? Math.min(leftMs, SHORT_PAUSE_MS) : stuck.note(run, 'stuck') / 2;
  const dueAt = await taken.giveBack(pauseMs);
  if (dueAt !== undefined) stuck.moved({ runId: run.runId, dueAt });
}
