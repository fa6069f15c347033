import type { Executor, FoundRun } from '../index.ts';
import { hasCode } from '../values/error-data.ts';
import type { Grant } from './authorize.ts';
import { RequestError } from './problem.ts';
import type { Web } from './web.ts';

/** A run that the caller of a request may see. */
export interface OwnRun {
  readonly line: FoundRun;
  readonly runId: string;
  readonly rootRunId: string;
}

/**
 * A refusal comes at a multiple of this time after the request, ms: how long the search took must not tell a run of another
 * caller from an unknown one.
 */
const REFUSAL_STEP_MS = 50;

/**
 * Finds a run for a caller. A run belongs to the caller of its root: the run that a host started.
 * @throws {RequestError} NOT_FOUND for an unknown run and for one of another caller alike; also for one that cannot be read,
 *   and for one of which only the outcome is kept: nothing says whose they are
 */
export async function checkOwnRun(
  { executor, web: { clock, warn } }: { readonly executor: Executor; readonly web: Pick<Web, 'clock' | 'warn'> },
  runId: string,
  grant: Grant,
): Promise<OwnRun> {
  const began = clock.monotonic();
  const find = async (id: string) => {
    try {
      return await executor.find(id);
    } catch (error) {
      if (grant.all || !isUnreadable(error)) throw error;
      if (!hasCode(error, 'INVALID_RUN_ID')) warn('http.run.unreadable', { runId: id, error });
      return null;
    }
  };
  const line = await find(runId);
  const root = line?.parent ? await find(line.parent.rootRunId) : line;
  const isOwn = root && !root.parent && callerOf(root) === grant.callerId;
  if (line && (grant.all || isOwn)) return { line, runId, rootRunId: line.parent?.rootRunId ?? runId };
  const took = Math.max(0, clock.monotonic() - began);
  await waitFor(clock, REFUSAL_STEP_MS * (1 + Math.floor(took / REFUSAL_STEP_MS)) - took);
  throw new RequestError('NOT_FOUND');
}

/** Returns which of these runs are roots of the caller of a grant. One that cannot be read belongs to none. */
export async function ownRoots(
  rootRunIds: Iterable<string>,
  { served: { executor }, grant }: { readonly served: { readonly executor: Executor }; readonly grant: Grant },
): Promise<ReadonlySet<string>> {
  const own = new Set<string>();
  for (const runId of new Set(rootRunIds)) {
    const line = await executor.find(runId).catch(() => null);
    if (line && !line.parent && callerOf(line) === grant.callerId) own.add(runId);
  }
  return own;
}

function waitFor(clock: Web['clock'], ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms);
  });
}

const unreadable = ['INVALID_RUN_ID', 'CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

/** Such a run must look like an unknown one. */
function isUnreadable(error: unknown): boolean {
  return unreadable.some((code) => hasCode(error, code));
}

/** Undefined if it is not known: only an outcome is kept. */
function callerOf(line: FoundRun): string | undefined {
  return line.meta?.callerId;
}
