import { InvalidRunIdError } from '../values/errors.ts';
import { CHILD_MARK } from './identity.ts';

export const MAX_RUN_ID_BYTES = 512;

/**
 * The one check of run ids, for all stores and the executor: any string of 1 to 512 bytes (UTF-8) is an id.
 * A lone surrogate is refused, because UTF-8 would turn two such ids into one.
 * @throws {InvalidRunIdError}
 */
export function checkRunId(runId: unknown): string {
  if (typeof runId !== 'string' || runId === '')
    throw new InvalidRunIdError('a run id must be a string that is not empty');
  const bytes = Buffer.byteLength(runId, 'utf8');
  if (bytes > MAX_RUN_ID_BYTES)
    throw new InvalidRunIdError(`a run id has at most ${MAX_RUN_ID_BYTES} bytes, this one has ${bytes}`);
  if (!runId.isWellFormed()) throw new InvalidRunIdError('a run id must be well-formed Unicode');
  return runId;
}

/**
 * The check of an id under which a host begins a run.
 * @throws {InvalidRunIdError} also for an id that begins with `~`: only a call of another run begins such a run
 */
export function checkHostRunId(runId: unknown): string {
  const checked = checkRunId(runId);
  if (!checked.startsWith(CHILD_MARK)) return checked;
  throw new InvalidRunIdError(
    'a run id that begins with ~ names a run that a call of another run begins: use another id',
  );
}
