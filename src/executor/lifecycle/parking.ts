import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { recordedText, rewriteHead, withStoredRun } from '../run/stored-run.ts';

/**
 * Sets a stored run aside: nobody takes it up until it is unparked.
 * @throws {RunOwnedElsewhereError} while somebody works on it: cancel it, or shut its process down, first
 * @throws {CheckpointMissingError} when the store has no record of it
 */
export function park(services: ExecutorServices, runId: string, reason: string): Promise<void> {
  const parked = { code: 'PARKED', reason: recordedText(services, reason) };
  return changed(services, runId, (record) => ({ ...record, parked }));
}

/**
 * Makes a parked run one that can be taken up again, with all of its attempts. Of one that was set aside because nobody
 * knows the outcome of a `once` call somebody has looked now: its model is told so, and the call stays as it is.
 * @throws what `park` throws
 */
export function unpark(services: ExecutorServices, runId: string): Promise<void> {
  return changed(services, runId, ({ parked, ...record }) => {
    const seen = parked?.code === 'OUTCOME_UNKNOWN' ? record.openStep : undefined;
    return { ...record, attempts: 0, ...(seen ? { openStep: recoverOpenStep(seen) } : {}) };
  });
}

function changed(
  services: ExecutorServices,
  runId: string,
  change: (record: RunCheckpoint) => RunCheckpoint,
): Promise<void> {
  return withStoredRun(services, runId, ({ record, store, claim, counts }) => {
    const changed = change(record);
    counts(changed.attempts);
    return rewriteHead(store, changed, claim);
  });
}
