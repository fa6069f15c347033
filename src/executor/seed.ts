import type { RunRequest } from '../run/request.ts';
import type { PersistedRun } from './persisted.ts';

/** How a run came to be, before anything of it is looked up. */
export interface RunSeed {
  readonly request: RunRequest;
  /** The id was made here a moment ago: no store can know it. */
  readonly isNewId: boolean;
  /** The snapshot of a host machine that is being restored. */
  readonly persisted?: PersistedRun;
  /** Bad input or an unreadable snapshot: the run ends with it and touches nothing. */
  readonly refusal?: Error;
  /** Recovery: how many starts without progress a run gets. */
  readonly maxAttempts?: number;
  /** Recovery: without a record there is nothing to do; never begin such a run anew. */
  readonly mustExist?: boolean;
  /** How many agents are above this one; absent = none. */
  readonly depth?: number;
}
