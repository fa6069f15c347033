import type { ErrorCode } from '../values/error-codes.ts';
import type { ErrorData } from '../values/error-data.ts';
import { PawlError } from '../values/errors.ts';
import type { FailedOutput, RunResult } from './result.ts';

/** A run did not succeed, and its host asked for an error (`run.orThrow()`). The code is that of the run's error. */
export class RunFailedError extends PawlError {
  readonly code: ErrorCode;
  declare readonly cause: ErrorData;
  /** Not enumerable: whoever prints the error does not print the conversation. */
  readonly #result: FailedOutput & Pick<RunResult, 'messages'>;

  constructor(result: FailedOutput & Pick<RunResult, 'messages'>) {
    const { runId, status, error } = result;
    super(`run ${runId} ended with status ${status}: ${error.code}: ${error.message}`, { cause: error });
    this.code = error.code;
    this.#result = result;
  }

  /** How the run ended: its status, its last words, what it used. */
  get result(): FailedOutput & Pick<RunResult, 'messages'> {
    return this.#result;
  }
}

/** The result of a run that succeeded. @throws {RunFailedError} of any other */
export async function okOrThrow<Data>(result: Promise<RunResult<Data>>): Promise<RunResult<Data> & { status: 'ok' }> {
  const ended = await result;
  if (ended.status === 'ok') return ended;
  throw new RunFailedError(ended);
}
