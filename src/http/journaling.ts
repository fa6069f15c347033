import type { Executor, RunEvent } from '../index.ts';

/** An executor that keeps the events of its runs where each process can read them. */
export interface JournalingExecutor extends Executor {
  readonly hasJournal: boolean;
  events(
    runId: string,
    options?: { readonly after?: string; readonly signal?: AbortSignal },
  ): AsyncIterableIterator<RunEvent & { readonly cursor: string }>;
}

/** Returns whether an executor keeps the events of its runs. */
export function isJournaling(executor: Executor): executor is JournalingExecutor {
  return (executor as Partial<JournalingExecutor>).hasJournal === true;
}
