import { RECORD_VERSION } from '../../record/checkpoint.ts';
import { CheckpointTooNewError, RevisionGapError } from '../../values/errors.ts';

/** What a delta says it follows. */
interface Following {
  readonly runId: string;
  readonly revision: number;
  readonly from: number;
}

/**
 * Whether a delta is to be written: false when its revision is there already, which is how a repeated append succeeds.
 * @param stored what the store has of the run
 * @throws {RevisionGapError} when it does not follow what is stored
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

/** What a newer version wrote is never written over. @throws {CheckpointTooNewError} */
export function checkReplaceable(runId: string, version: number | undefined): void {
  if (version === undefined || version <= RECORD_VERSION) return;
  throw new CheckpointTooNewError(
    `the record of run ${runId} has version ${version}, this Pawl writes ${RECORD_VERSION}: upgrade the package (the record is untouched)`,
  );
}
