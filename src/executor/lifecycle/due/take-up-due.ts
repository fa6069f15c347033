import { mayBeChild, type TreePlace } from '../../../record/run-tree.ts';
import type { RunResult } from '../../../run/result.ts';
import type { DueRun } from '../../../store/due-port.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { agentFor, emptyReport, type TakenUp, takeUp, treeIn, type Work } from '../stored/recover-one-run.ts';
import { takeNamed } from './take-named.ts';

/** How many runs a sweep lets live at once; those of `recover` count as well. */
const CONCURRENCY = 64;

/** Another process works on the run, or it has ended; or its agent is left alone, with all of its runs. */
const takenElsewhere = ['RUN_OWNED_ELSEWHERE', 'RUN_NOT_FOUND', 'SETUP'];

/** A due run that this process may continue. */
interface Candidate extends TakenUp {
  readonly due: DueRun;
}

/**
 * Takes up runs that are due, unless they are live here, and notes in the sweep which got no further. Waits for places among the
 * recovered runs, and for the starts. Never rejects.
 */
export async function takeUpDue(services: ExecutorServices, dues: readonly DueRun[]): Promise<void> {
  const { defaults } = services.config;
  const work: Work = {
    ...{ services, report: emptyReport(), begun: [], signal: undefined, concurrency: CONCURRENCY },
    maxAttempts: defaults.maxAttempts,
  };
  const found: Candidate[] = [];
  for (const due of dues) found.push(...(await candidatesOf(services, due)));
  const begin = (run: Candidate) => {
    const begun = takeUp(run, work).then((active) => noteStart(services, run.due, active));
    work.begun.push(begun);
    return begun;
  };
  // Another process has taken the others.
  await takeNamed(found, work, begin);
  await Promise.all(work.begun);
}

async function candidatesOf(services: ExecutorServices, due: DueRun): Promise<Candidate[]> {
  const { runId, meta, parent } = due;
  const { registry, config } = services;
  if (!config.store || registry.live(runId) || services.storedWork.has(runId)) return [];
  if (!services.paused.mayTake(meta.agentId)) return [];
  if (!agentFor(services, meta.agentId)) return noteDue(services, due, 'stuck');
  const run = { runId, meta, ...(parent ? { parent } : {}) };
  const place: TreePlace | undefined = mayBeChild(run) ? await treeIn(config.store, services).placeOf(run) : undefined;
  // Its parent continues it; one that is live here may be about to wait for it.
  if (place?.kind === 'child' && !place.isAlone)
    return noteDue(services, due, registry.live(place.parent) === undefined ? 'stuck' : 'further');
  return [{ due, run, ...(place ? { place } : {}) }];
}

function noteDue({ stuck }: ExecutorServices, due: DueRun, what: 'further' | 'stuck'): [] {
  stuck.note(due, what);
  return [];
}

/** Notes whether a run that was taken up got further. */
function noteStart({ stuck }: ExecutorServices, due: DueRun, run: ActiveRun | undefined): void {
  if (run?.life.hasBegun) {
    // A run that was interrupted again (its store failed) is due at once.
    const note = ({ status, error }: RunResult) =>
      stuck.note(due, status === 'interrupted' && error.code !== 'SETUP' ? 'stuck' : 'further');
    void run.life.ended.promise.then(note);
    return;
  }
  // Only the clocks differ: the store says that a time has come, and this host that it has not. A command that wakes a run and
  // changes nothing is gone with it.
  const isEarly = run?.life.isResting && due.dueAt > 0;
  const isElsewhere = run?.life.isAnswered || takenElsewhere.includes(run?.life.refusal?.code ?? '');
  stuck.note(due, isEarly || !isElsewhere ? 'stuck' : 'further');
}
