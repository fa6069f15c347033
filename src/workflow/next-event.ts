import { type OpenCall, stepOf } from '../run/open-step.ts';
import type { Progress } from '../run/progress.ts';
import { waitsOf } from '../run/waits/wait-rules.ts';
import type { WorkflowState } from '../run/workflow/state.ts';
import type { JsonObject } from '../values/json.ts';
import { isFromRun, messageIdOf, withMessage } from './messages.ts';
import { resultEvent } from './program.ts';

/** The event that a workflow takes next, and its progress without it; without an event nothing is there. */
interface Next {
  readonly event?: JsonObject;
  readonly progress: Progress;
}

/** The id of an event that the machine has sent itself. */
export const OWN = '';

/**
 * Returns what a workflow takes next, of all that is there: what the machine has sent itself, what other runs have sent, results of calls
 * in the order of their starts, timers by their time, then events as they came.
 */
export function nextOf(progress: Progress): Next {
  // What a child has sent before it ended comes before its result, as in XState.
  const sent = nextEvent(progress, (id) => id === OWN) ?? nextEvent(progress, isFromRun);
  if (sent) return sent;
  const result = nextResult(progress);
  if (result.event) return result;
  const timer = nextTimer(result.progress);
  if (timer.event) return timer;
  return nextEvent(timer.progress, () => true) ?? timer;
}

/** A result belongs to one start of a call: it is dropped once no actor waits for that start. */
function nextResult(progress: Progress): Next {
  const { openStep, workflow } = progress;
  const call = openStep?.calls.find(({ state }) => state === 'done');
  if (!openStep || !workflow || !call) return { progress };
  const without = withCalls(
    progress,
    openStep.calls.filter((each) => each !== call),
  );
  const actorId = Object.entries(workflow.calls).find(([, callId]) => callId === call.callId)?.[0];
  if (actorId === undefined) return nextResult(without);
  const { [actorId]: _, ...calls } = workflow.calls;
  return { event: resultEvent(actorId, call), progress: { ...without, workflow: { ...workflow, calls } } };
}

/** A timer is due once its wait is over. One whose event is for another run is sent, and not taken. */
function nextTimer(progress: Progress): Next {
  const { timers = [] } = progress.workflow ?? {};
  if (timers.length === 0) return { progress };
  const open = new Set(waitsOf(progress).map(({ id }) => id));
  const due = timers.find(({ waitId }) => !open.has(waitId));
  if (!due) return { progress };
  const without = withState(progress, { timers: timers.filter((timer) => timer !== due) });
  if (!due.to) return { event: due.event, progress: without };
  return nextTimer(withMessage(without, { id: messageIdOf([due.waitId]), to: due.to, event: due.event }));
}

function nextEvent(progress: Progress, isWanted: (id: string) => boolean): Next | undefined {
  const { events = [] } = progress.workflow ?? {};
  const next = events.find(({ id }) => isWanted(id));
  return (
    next && { event: next.event, progress: withState(progress, { events: events.filter((each) => each !== next) }) }
  );
}

/** Returns the progress of a workflow after a change of its state. */
export function withState(progress: Progress, changed: Partial<WorkflowState>): Progress {
  return { ...progress, workflow: { ...(progress.workflow as WorkflowState), ...changed } };
}

const noMessage = { role: 'assistant' as const, content: [] };

/** Returns the progress with these open calls in place of those that it has. */
export function withCalls({ openStep: _, ...progress }: Progress, calls: readonly OpenCall[]): Progress {
  return calls.length === 0 ? progress : { ...progress, openStep: stepOf(noMessage, calls) };
}
