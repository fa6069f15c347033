import type { Executor } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import { isForChat } from './wait-parts.ts';

/** How many runs below a run are looked at. */
const MAX_CHILD_DEPTH = 8;

/**
 * Returns the ids of the open waits of a run, and of the runs below it, that only a person ends. A run with an answer that it
 * has not read yet counts as one without such a wait.
 */
export async function personWaits(executor: Executor, runId: string, depth = 0): Promise<ReadonlySet<string>> {
  // Asked first: an answer that is not there any more is in the record that is read next.
  if (await hasUnread(executor, runId)) return new Set();
  const line = await executor.find(runId);
  const waits = line && 'waits' in line ? (line.waits ?? []) : [];
  const found = new Set(waits.filter(isForChat).map(({ id }) => id));
  for (const wait of waits)
    if (wait.kind === 'child' && depth < MAX_CHILD_DEPTH)
      for (const id of await personWaits(executor, wait.childRunId, depth + 1)) found.add(id);
  return found;
}

/** Returns whether commands wait in the store for a run. */
async function hasUnread(executor: Executor, runId: string): Promise<boolean> {
  try {
    return (await executor.control(runId).unread()) > 0;
  } catch (error) {
    if (hasCode(error, 'UNSUPPORTED')) return false;
    throw error;
  }
}
