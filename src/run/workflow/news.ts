import type { OpenCall } from '../ledger.ts';
import type { Progress } from '../progress.ts';
import type { EnteredEvent, WorkflowState } from './state.ts';

type At = Pick<Progress, 'workflow' | 'openStep' | 'waiting'>;

/**
 * Returns whether there is something that the machine of a workflow must take: its beginning, a result, a timer whose wait is
 * over, or an event.
 */
export function hasNews(at: At): boolean {
  if (!at.workflow || readyResult(at)) return true;
  return dueTimer(at) !== undefined || readyEvent(at) !== undefined;
}

/**
 * Returns the call whose result the machine takes next: in the order in which the calls ended. Those that are answers come in the order in
 * which the answers were sent, also where one takes longer to become its result.
 */
export function readyResult({ openStep }: At): OpenCall | undefined {
  const before = firstOnItsWay(openStep);
  const ready = openStep?.calls.filter((call) => call.state === 'done' && answeredAt(call) <= before) ?? [];
  const [first] = ready;
  if (!first || answeredAt(first) === 0) return first;
  const answers = ready.filter((call) => answeredAt(call) > 0);
  return answers.reduce((earliest, call) => (answeredAt(call) < answeredAt(earliest) ? call : earliest));
}

/** Returns the first event that the machine may take now: none that was sent after an answer whose call has no result yet. */
export function readyEvent({ workflow, openStep }: At): EnteredEvent | undefined {
  const { events = [] } = workflow ?? {};
  if (events.length === 0) return undefined;
  const before = firstOnItsWay(openStep);
  return events.find(({ at = 0 }) => at <= before);
}

/** When the first answer was sent that is on its way to the result of its call, wall clock, ms. */
function firstOnItsWay(openStep: Progress['openStep']): number {
  const onTheirWay =
    openStep?.calls.filter(({ isWait, answers, state }) => isWait && answers && state !== 'done') ?? [];
  return Math.min(...onTheirWay.map(answeredAt));
}

/** When the answer was sent that is the result of a call, wall clock, ms; 0 for a call that did something. */
export function answeredAt({ answers }: OpenCall): number {
  return answers?.at(-1)?.at ?? 0;
}

/**
 * Returns the first timer whose wait is over. An answer that came before it may be on its way to the result of its call: the machine takes
 * that first.
 */
export function dueTimer({ workflow, openStep, waiting }: At): WorkflowState['timers'][number] | undefined {
  if (!workflow || workflow.timers.length === 0) return undefined;
  const open = new Set(waiting?.waits.map(({ id }) => id));
  const timer = workflow.timers.find(({ waitId }) => !open.has(waitId));
  if (!timer) return undefined;
  return firstOnItsWay(openStep) < timer.dueAt ? undefined : timer;
}
