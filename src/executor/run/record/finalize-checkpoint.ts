import { type CheckpointOutcome, classifyCheckpointOutcome } from '../../../run/finalize.ts';
import type { Checkpointer } from '../../../store/checkpointer.ts';

/**
 * Finalises a run's record at its end by the finalize matrix: completes it, fails it, or leaves it for the next process.
 * @param checkpointer null = the run was not recorded, and there is nothing to do
 * @returns the decision; rejects with the checkpointer's error
 */
export async function finalizeCheckpoint(
  checkpointer: Checkpointer | null,
  error: unknown,
  cause: unknown,
): Promise<CheckpointOutcome> {
  const outcome = classifyCheckpointOutcome(error, cause);
  if (outcome === 'complete') await checkpointer?.complete();
  if (outcome === 'fail') await checkpointer?.fail(error);
  return outcome;
}
