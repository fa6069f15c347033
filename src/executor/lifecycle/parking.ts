import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import { forgetRetry } from '../../run/waits/wait-rules.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { recordedText, rewriteHead, withStoredRun } from '../run/stored-run.ts';

/**
 * Parks a stored run for `control(id).park`: no process starts it until it is unparked.
 * @throws {RunOwnedElsewhereError} while an owner works on it: cancel it, or shut its process down, first
 * @throws {CheckpointMissingError} if the store has no record of it
 */
export function park(services: ExecutorServices, runId: string, reason: string): Promise<void> {
  const parked = { code: 'PARKED', reason: recordedText(services, reason) };
  return changed(services, runId, (record) => ({ ...record, parked }));
}

/**
 * Unparks a stored run for `control(id).unpark`, with all of its attempts. If it was parked because the outcome of a `once`
 * call is unknown, a person has checked it now: the model reads that it is unknown, and the call stays as it is. A
 * run whose model was away asks it again at once.
 * @throws the errors of `park`
 */
export async function unpark(services: ExecutorServices, runId: string): Promise<void> {
  await changed(services, runId, ({ parked, ...record }) => {
    const seen = parked?.code === 'OUTCOME_UNKNOWN' ? record.openStep : undefined;
    return { ...forgetRetry(record), attempts: 0, ...(seen ? { openStep: recoverOpenStep(seen) } : {}) };
  });
  services.config.hints.tell(runId);
}

function changed(
  services: ExecutorServices,
  runId: string,
  change: (record: RunCheckpoint) => RunCheckpoint,
): Promise<void> {
  return withStoredRun(services, runId, ({ record, store, claim, counts }) => {
    const changed = change(record);
    counts(changed.attempts);
    return rewriteHead(store, changed, { claim });
  });
}
