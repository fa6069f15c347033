import type { InterruptedRun } from '../../index.ts';
import { staysParked } from '../../run/fields.ts';
import type { RunStore } from '../open/open-store.ts';
import { pidOf, statusOf } from '../open/stored-runs.ts';
import { adviceFor, Failure, oneLine } from '../ui/failure.ts';
import { quoted } from '../ui/shell-words.ts';

/** The failure of a command about a run that the store does not know. */
export function unknownRun(runId: string, store: RunStore): Failure {
  return new Failure(
    `there is no run ${quoted(runId)} in ${store.path}; \`pawl list${store.option}\` shows those that wait, and results are kept for a week`,
  );
}

/** The error for a run without a record: how it ended, or that it is unknown. */
export async function withoutRecord(store: RunStore, runId: string): Promise<Failure> {
  const outcome = await store.outcome(runId);
  return outcome ? new Failure(`run ${oneLine(runId)} has ended: ${outcome.status}`) : unknownRun(runId, store);
}

/** What to do about a parked run. @param code why it was parked, as the store lists it */
export function todoForParked(code: string | undefined): string {
  if (code === 'DEFINITION_CHANGED')
    return 'give its agent the phases that the run started with, and resume it; or end it with `pawl cancel`';
  return adviceFor('RUN_PARKED', '') ?? '';
}

/** Why a run cannot be resumed, and whether a person must act. */
export interface Obstacle {
  readonly reason: string;
  readonly needsSomebody: boolean;
}

export function obstacleOf(entry: InterruptedRun): Obstacle | undefined {
  const pid = pidOf(entry);
  switch (statusOf(entry)) {
    case 'interrupted':
      return undefined;
    case 'live': {
      const where = pid === undefined ? 'another process' : `process ${pid}`;
      return { reason: `runs in ${where}; wait for it, or end that process first`, needsSomebody: false };
    }
    case 'parked':
      // It continues if its agent is again the earlier one; its start finds out.
      if ('code' in entry && !staysParked(entry.code)) return undefined;
      return {
        reason: `is parked: ${oneLine(entry.reason ?? '')}; ${todoForParked(undefined)}`,
        needsSomebody: true,
      };
    default:
      return { reason: unreadable(entry.reason ?? ''), needsSomebody: true };
  }
}

/**
 * Says why a record cannot be read, and what to do about it.
 * @param reason from a list: the code of an error, and its message
 */
function unreadable(reason: string): string {
  const todo = adviceFor(/^[A-Z_]+/.exec(reason)?.[0] ?? '', reason);
  return oneLine(`cannot be read: ${reason}${todo === undefined ? '' : `; ${todo}`}`);
}
