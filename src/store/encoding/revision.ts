import { RECORD_VERSION } from '../../record/checkpoint.ts';
import { CheckpointTooNewError, RevisionGapError } from '../../values/errors.ts';

/** The record that a delta follows. */
interface Following {
  readonly runId: string;
  readonly revision: number;
  readonly from: number;
}

/**
 * Returns whether a delta must be written. False if its revision is already stored, so a repeated append succeeds.
 * @param stored what the store has of the run
 * @throws {REVISION_GAP} if it does not follow the stored revision
 */
export function isNewRevision(
  delta: Following,
  stored: { readonly revision: number; readonly messageCount: number } | undefined,
): boolean {
  const { runId, revision, from } = delta;
  if (stored && stored.revision >= revision) return false;
  if (stored?.revision === revision - 1 && stored.messageCount === from) return true;
  const found = stored ? `revision ${stored.revision} with ${stored.messageCount} messages` : 'no record';
  throw new RevisionGapError(
    `run ${runId}: a delta of revision ${revision} from message ${from} does not follow what is stored (${found}); save the whole record`,
  );
}

/**
 * Checks that a stored record may be replaced. A record of a newer version is never overwritten.
 * @throws {CHECKPOINT_TOO_NEW}
 */
export function checkReplaceable(runId: string, version: number | undefined): void {
  if (version === undefined || version <= RECORD_VERSION) return;
  throw new CheckpointTooNewError(
    `the record of run ${runId} has version ${version}, this Pawl writes ${RECORD_VERSION}: upgrade the package (the record is untouched)`,
  );
}
