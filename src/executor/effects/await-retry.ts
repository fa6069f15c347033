import type { RetryInput } from '../../../machines/actors.ts';
import { isParkedBy } from '../../run/finalize.ts';
import type { FailedOutput } from '../../run/result.ts';
import type { ActiveRun } from '../run/active-run.ts';

/**
 * Waits until a run of a host's machine, which this process has left, may be tried again: its store is back, a lease is over, a
 * person has unparked it, or it has ended elsewhere. Never rejects; an executor that is shut down never tries again.
 */
export async function awaitRetry({ output, cancel }: RetryInput, run: ActiveRun): Promise<void> {
  const { error: why } = output as FailedOutput;
  const isParked = isParkedBy(why) || run.progress?.parked !== undefined;
  const { runId, seed } = run;
  const tries = run.life.hasBegun ? 1 : (seed.tries ?? 1);
  await run.services.leftRuns.untilReady(run, { runId, why, isParked, tries, cancel: cancel?.message });
}
