import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunOutcome } from '../run/result.ts';
import type { Message } from '../values/message.ts';
import type { Executor } from './executor.ts';

/** What other parts of this package ask of an executor, besides what users have. */
export interface ExecutorInside {
  /**
   * A text for comparison: two equal ones say that no process has written to the store between them. A claim whose time is over
   * is no write. It costs one small read, so that it can be asked twice a second.
   * @returns undefined if the store cannot tell @throws the store's own error if it does not answer
   */
  changeMark(): Promise<string | undefined>;
  /** Whether this executor has a journal (the option `journal`), so that `events` can be read. */
  readonly hasJournal: boolean;
  /** How long the events of a run can be read after its end, ms: `retention.events`; 0 without a journal. */
  readonly lingerMs: number;
  /** The messages before those of a record, redacted: the earlier conversation, or the earlier turns of its thread. */
  earlierOf(record: RunCheckpoint): Promise<readonly Message[]>;
  /**
   * Stores the first record of a fork of a run, which any process with its agent continues.
   * @returns its id @throws the errors of `executor.fork`
   */
  forkStored(runId: string, options: Parameters<Executor['fork']>[1]): Promise<string>;
  /**
   * Puts a run that has ended into the store, unless one of its id is known there.
   * @returns whether it is new here @throws {UNSUPPORTED} @throws {NOT_DURABLE} @throws the store's own error
   */
  importRun(record: RunCheckpoint, outcome: RunOutcome): Promise<boolean>;
}

/**
 * Returns the parts of an executor that are not in its public type. They are its properties: a copy of it has them too.
 * @throws {TypeError} for a value that `createExecutor` did not make
 */
export function insideOf(executor: Executor): ExecutorInside {
  const inside = executor as Executor & Partial<ExecutorInside>;
  if (inside?.changeMark) return inside as Executor & ExecutorInside;
  throw new TypeError(
    'this needs an executor that was made with createExecutor, or a copy of one with all its properties',
  );
}
