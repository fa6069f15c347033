import { type OpenCall, stepOf } from '../run/open-step.ts';
import type { Progress } from '../run/progress.ts';
import { answeredAt, dueTimer, readyEvent, readyResult } from '../run/workflow/news.ts';
import type { WorkflowState } from '../run/workflow/state.ts';
import type { JsonObject } from '../values/json.ts';
import { isFromRun, messageIdFor, withMessage } from './messages.ts';
import { resultEvent } from './program.ts';

/** The event that a workflow takes next, and its progress without it; without an event nothing is there. */
interface Next {
  readonly event?: JsonObject;
  /** Of an answer: when it was sent, wall clock, ms. */
  readonly at?: number;
  readonly progress: Progress;
}

/** The id of an event that the machine has sent itself. */
export const OWN = '';

/**
 * Returns what a workflow takes next, of all that is there: what the machine has sent itself, what other runs have sent, results of calls
 * in the order in which they ended, timers by their time, then events as they came. An event that was sent before an answer comes before it.
 */
export function nextOf(progress: Progress): Next {
  // What a child has sent before it ended comes before its result, as in XState.
  const sent = nextEvent(progress, (id) => id === OWN) ?? nextEvent(progress, isFromRun);
  if (sent) return sent;
  const result = nextResult(progress);
  const event = readyEvent(result.progress);
  if (result.event && !(event && (event.at ?? 0) < (result.at ?? 0))) return result;
  const timer = result.event ? { progress } : nextTimer(result.progress);
  if (timer.event || !event) return timer;
  return nextEvent(timer.progress, (id) => id === event.id) ?? timer;
}

/** A result belongs to one start of a call: it is dropped once no actor waits for that start. */
function nextResult(progress: Progress): Next {
  const { openStep, workflow } = progress;
  const call = readyResult(progress);
  if (!openStep || !workflow || !call) return { progress };
  const without = withCalls(
    progress,
    openStep.calls.filter((each) => each !== call),
  );
  const actorId = Object.keys(workflow.calls).find((id) => workflow.calls[id] === call.callId);
  if (actorId === undefined) return nextResult(without);
  // A rest of so many keys would cost three times as much.
  const calls = { ...workflow.calls };
  delete calls[actorId];
  const event = resultEvent(actorId, call);
  return { event, at: answeredAt(call), progress: { ...without, workflow: { ...workflow, calls } } };
}

/** A timer is due once its wait is over. One whose event is for another run is sent, and not taken. */
function nextTimer(progress: Progress): Next {
  const { timers = [] } = progress.workflow ?? {};
  const due = dueTimer(progress);
  if (!due) return { progress };
  const without = withState(progress, { timers: timers.filter((timer) => timer !== due) });
  if (!due.to) return { event: due.event, progress: without };
  return nextTimer(withMessage(without, { id: messageIdFor([due.waitId]), to: due.to, event: due.event }));
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
