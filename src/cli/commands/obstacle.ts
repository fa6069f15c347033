import { statSync } from 'node:fs';
import { whyOver } from '../../record/reopen.ts';
import type { RunVerdict } from '../../record/verdict.ts';
import { hasCode } from '../../values/error-data.ts';
import type { Arguments } from '../arguments.ts';
import { openExistingStore, type RunStore } from '../open/open-store.ts';
import { adviceFor, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';

/** Returns the error of a command about a run that the store does not know. */
export function unknownRunFailure(runId: string, store: RunStore): Failure {
  return new Failure(
    `there is no run ${quoted(runId)} in ${store.path}; \`${PAWL} list${store.option}\` shows those that wait, and results are kept for a week`,
  );
}

/** Returns the error of a command about a run without a record: how it ended, or that it is unknown. */
export async function withoutRecord(store: RunStore, runId: string): Promise<Failure> {
  const outcome = await store.outcomes.find(runId);
  if (!outcome) return unknownRunFailure(runId, store);
  const { status, error } = outcome;
  const why = error ? ` (${oneLine(`${error.code}: ${error.message}`)})` : '';
  return new Failure(`run ${oneLine(runId)} has ended: ${status}${why}`);
}

/** Returns whether `pawl retry` continues a run that ended badly. */
export async function canRetry(store: RunStore, runId: string): Promise<boolean> {
  const ended = await store.load(runId, { ended: true, messages: false }).catch(() => null);
  return ended?.outcome !== undefined && whyOver({ ...ended, outcome: ended.outcome }) === undefined;
}

/**
 * Runs the work of a command on its store, which must exist, and closes it.
 * @param runId the run that the command is about; without a record, the error says how it ended
 */
export async function withStore(
  { store: option }: Pick<Arguments, 'store'>,
  work: (store: RunStore) => Promise<number>,
  runId?: string,
): Promise<number> {
  const store = await openExistingStore(option);
  try {
    return await work(store);
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (runId !== undefined && hasCode(error, 'RUN_NOT_FOUND')) throw await withoutRecord(store, runId);
    throw new Failure(lineOf(error), { cause: error });
  } finally {
    await store.close();
  }
}

/** Returns what a user can do about a parked run. @param code why it was parked, as the store lists it */
export function todoForParked(code: string | undefined): string {
  if (code === 'DEFINITION_CHANGED')
    return `give its agent the phases that the run started with, and resume it; or end it with \`${PAWL} cancel\``;
  return adviceFor('RUN_PARKED', '') ?? '';
}

/** Returns what a person can do about a run that `recover` leaves; undefined if nothing, or if the reason already says it. */
function todoFor({ verdict, code = '', reason }: RunVerdict): string | undefined {
  switch (verdict) {
    case 'parked':
      return todoForParked(code);
    case 'resumes':
      return code === 'SETUP' ? 'set what is missing, and start the process again, or deploy it' : undefined;
    case 'fails':
      return 'fix the `migrate` of its agent module';
    case 'unreadable':
      return adviceFor(code, reason);
    default:
      return undefined;
  }
}

/** Returns a verdict as a part of a line: the reason, and what to do. @param pid the process that works on the run */
export function describeVerdict(found: RunVerdict, pid?: number): string {
  const { reason } = found;
  const todo = todoFor(found);
  const words = pid === undefined ? reason : `${reason} (process ${pid})`;
  return oneLine(todo === undefined ? words : `${words}; ${todo}`);
}

/** The agent of a run, and the module with which this user started it. */
interface Started {
  readonly agentId: string | undefined;
  /** Undefined: another program, user or machine started the run. */
  readonly pathOf: () => string | undefined;
}

/**
 * Adds to the verdict on a run that would be resumed whether `pawl recover` knows its agent module, and whether the file still
 * exists. If another program started the run, only that program has the agent.
 */
export function withModule<Found extends RunVerdict>(found: Found, { agentId = '', pathOf }: Started): Found {
  if (found.verdict !== 'resumes') return found;
  const skipped = (reason: string): Found => ({
    ...found,
    verdict: 'skipped',
    code: 'AGENT_NOT_FOUND',
    reason,
    needsPerson: true,
  });
  const agent = oneLine(agentId);
  try {
    const path = pathOf();
    if (path === undefined)
      return {
        ...found,
        reason: `${found.reason}; \`pawl recover\` needs its agent module as an argument, the one of agent ${agent}`,
      };
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) return found;
    return skipped(
      `its agent ${agent} is missing: the module ${oneLine(path)} is gone; name its new path: ${PAWL} recover <agent module>`,
    );
  } catch (error) {
    return skipped(lineOf(error));
  }
}

/** Returns a sentence about a run. @param words as `describeVerdict` gives them */
export function aboutRun(runId: string, words: string): string {
  const run = `run ${oneLine(runId)}`;
  return words.startsWith('it ') ? `${run} ${words.slice(3)}` : `${run}: ${words}`;
}
