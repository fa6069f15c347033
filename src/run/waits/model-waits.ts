import { isIdle } from '../open-step.ts';
import { keepPhase } from '../pipeline.ts';
import type { Progress } from '../progress.ts';
import { hasNews } from '../workflow/news.ts';
import { isForModel, type ModelWait, type Wait } from './wait.ts';
import { noWaits, waitsOf, withoutLostWaits, withWaits } from './wait-rules.ts';

/* The waits of a run for its model: it is away (`retry`), or its limit gives the next call a later turn (`limit`). */

type Waits = Pick<Progress, 'waiting'>;

/** Returns the wait of a run whose model is away; undefined if it answers. */
export function retryWaitOf(run: Waits): Extract<Wait, { kind: 'retry' }> | undefined {
  if (run.waiting === undefined) return undefined;
  return waitsOf(run).find((wait) => wait.kind === 'retry');
}

/** Returns the wait of a run for the turn of its next model call. */
export function limitWaitOf(run: Waits): Extract<Wait, { kind: 'limit' }> | undefined {
  if (run.waiting === undefined) return undefined;
  return waitsOf(run).find((wait) => wait.kind === 'limit');
}

/** Returns the wait after which a run asks its model: a turn comes after an outage, which stays open. */
export function modelWaitOf(run: Waits): ModelWait | undefined {
  return limitWaitOf(run) ?? retryWaitOf(run);
}

/** Returns whether nothing but waits is left of a run: each open call has answered or waits, or it waits for its model until a time. */
export function isAtRest(record: Pick<Progress, 'waiting' | 'openStep' | 'outcome' | 'workflow'>): boolean {
  const { openStep, outcome, workflow } = record;
  // Events may come to a workflow that waits for nothing else. The process that recorded a wait as over may have died before it was
  // taken; and its events for other runs must be sent.
  if (workflow) return !outcome && !hasNews(record) && !workflow.outbox && (!openStep || isIdle(openStep));
  const waits = waitsOf(withoutLostWaits(record));
  if (outcome || waits.length === 0) return false;
  const forModel = modelWaitOf({ waiting: { waits, settled: [] } });
  const isWaiting = openStep ? isIdle(openStep) : forModel !== undefined;
  return isWaiting && !(forModel && forModel.dueAt === undefined);
}

/** Returns the progress with the next wait for a model. A model that is away begins the last such wait again; a turn leaves it as it is. */
export function awaitModel(progress: Progress, wait: Wait): Progress {
  const others = waitsOf(progress).filter(({ kind }) => kind !== 'limit' && kind !== wait.kind);
  return keepPhase({ ...progress, waiting: withWaits(progress.waiting ?? noWaits, [...others, wait]) });
}

/** Returns the run without its waits for a model: the model has answered, or a person begins again. */
export function forgetModelWaits<Run extends Waits>(run: Run): Run {
  if (!modelWaitOf(run)) return run;
  const { waiting = noWaits, ...rest } = run;
  const waits = waiting.waits.filter((wait) => !isForModel(wait));
  if (waits.length + waiting.settled.length === 0) return rest as Run;
  return { ...run, waiting: withWaits(waiting, waits) };
}
