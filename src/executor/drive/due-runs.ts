import type { DueList, ListDueOptions } from '../../store/due-port.ts';
import { NotDurableError, UnsupportedError } from '../../values/errors.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';
import type { ExecutorServices } from '../run/active-run.ts';

/** The options of `executor.due()`. */
export interface DueRunsOptions {
  /** Most runs of the answer; default 1,000. A shorter answer is the last page. */
  readonly limit?: number;
  /** The last run of the page before. */
  readonly after?: ListDueOptions['after'];
}

const optionKeys: KnownKeys<DueRunsOptions> = { limit: true, after: true };
const USUAL_LIMIT = 1_000;

/**
 * Lists one page of the runs that are due and that no process works on.
 * @throws {TypeError} for options that cannot be @throws {NOT_DURABLE} @throws {UNSUPPORTED} @throws the store's own error
 */
export async function listDueRuns({ config }: ExecutorServices, options: DueRunsOptions): Promise<DueList> {
  checkKeys(options, optionKeys, { of: 'executor.due' });
  const { limit = USUAL_LIMIT, after } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw new TypeError(`executor.due: limit must be a whole number above 0, not ${String(limit)}`);
  if (after !== undefined && !(typeof after?.runId === 'string' && Number.isFinite(after.dueAt)))
    throw new TypeError('executor.due: after must be the last run of a page, or its { dueAt, runId }');
  const { store } = config;
  if (!store) throw new NotDurableError('executor.due needs a store (createExecutor({ store }))');
  if (!store.due) throw new UnsupportedError('this store has no due runs: it has no group due');
  return store.due.list({ limit, ...(after ? { after } : {}) });
}
