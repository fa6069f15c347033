import { callOf, endedLast } from '../src/run/open-step.ts';
import { type Progress, recordResult, withdrawCalls } from '../src/run/progress.ts';
import { type Judgement, waitsOf } from '../src/run/waits/wait-rules.ts';
import { type InspectedSteps, outboxOf, type WorkflowAdvance, withEntered } from '../src/run/workflow/advanced.ts';
import type { ToolOutput } from '../src/values/message.ts';
import { toolCallId, withoutPlace } from './call-ids.ts';
import type { RunContext, RunMachineEvent, ToolAnswer } from './context.ts';
import { type Enqueue, isToJudge, startTools } from './tool-calls.ts';
import { holdCall, parked, startJudged } from './waiting.ts';

/* What the chart of a workflow does with the transitions of its machine: the parts of `setup.ts` about workflows. */

/** Stores what came of the machine's transitions, stops the calls that it does not need any more, and starts the new ones. */
export function applyAdvance(context: RunContext, advanced: WorkflowAdvance, enqueue: Enqueue): void {
  const { told, acts, stopped, end } = advanced;
  // The open calls of a machine that failed stay in the record: those whose intent is not stored have not begun.
  const unbegun = end ? context.intents.flatMap(({ calls }) => calls) : [];
  const progress = withdrawCalls(advanced.progress, unbegun);
  const gone = new Set(stopped.map(({ callId }) => callId));
  for (const call of stopped) {
    if (context.places.includes(call.callId)) enqueue.stopChild(toolCallId(context, context.progress, call.callId));
    enqueue.emit({ type: 'call.stopped', call, isAtEnd: end !== undefined });
  }
  announceWithdrawn(context, advanced, enqueue);
  for (const each of told) enqueue.emit(each);
  const left = {
    places: context.places.map((callId) => (callId !== undefined && gone.has(callId) ? undefined : callId)),
    intents: context.intents.map(({ boundary, calls }) => ({
      boundary,
      calls: calls.filter(({ callId }) => !gone.has(callId)),
    })),
    ...(end ? { ...end, leftCalls: [...context.leftCalls, ...gone] } : {}),
  };
  const known = new Set(waitsOf(context.progress).map(({ id }) => id));
  const opened = waitsOf(progress).filter(({ id }) => !known.has(id));
  const before = new Set(outboxOf(context.progress).map(({ id }) => id));
  const posted = outboxOf(progress).filter(({ id }) => !before.has(id));
  const boundary = startTools({ ...context, ...left }, progress, {
    enqueue,
    also: left,
    // Its end is stored with the outcome, unless actions or events for other runs wait for a save.
    save: end && acts.length === 0 && posted.length === 0 ? undefined : 'answer',
  });
  const at = boundary ?? context.requested;
  if (opened.length > 0) enqueue.emit({ type: 'waits.opened', waits: opened, boundary: at });
  if (context.isInspected)
    enqueue.emit({ type: 'workflow.inspected', ...inspectedOf(context, advanced), boundary: at });
  if (posted.length > 0) enqueue.emit({ type: 'messages.posted', messages: posted, boundary: at });
  if (acts.length > 0) enqueue.emit({ type: 'workflow.acts', acts, boundary: at });
}

function inspectedOf({ progress }: RunContext, { steps, end }: WorkflowAdvance): InspectedSteps {
  return { before: progress.workflow, steps, error: end && 'error' in end ? end.error : undefined };
}

function announceWithdrawn(context: RunContext, { progress }: WorkflowAdvance, enqueue: Enqueue): void {
  const open = new Set(waitsOf(progress).map(({ id }) => id));
  const waits = waitsOf(context.progress).filter(({ id }) => !open.has(id));
  if (waits.length > 0) enqueue.emit({ type: 'waits.withdrawn', waits });
}

/** An event waits until the machine takes it; the save of that has both. */
export function enterEvent(
  { progress, requested }: RunContext,
  { entered }: Extract<RunMachineEvent, { type: 'workflow.event' }>,
  enqueue: Enqueue,
): void {
  const after = withEntered(progress, entered);
  enqueue.assign({ progress: after });
  enqueue.emit({ type: 'event.entered', id: entered.id, boundary: after === progress ? requested : requested + 1 });
}

/** Starts the calls that were judged, those that a person has to approve wait, and denied ones have their end: in one save. */
export function startJudgedCalls(context: RunContext, given: readonly Judgement[], enqueue: Enqueue): void {
  const { openStep } = context.progress;
  const calls = new Map(openStep?.calls.map((call) => [call.callId, call]));
  // A call may have been stopped meanwhile.
  const judgements = given.filter(({ callId }) => {
    const call = calls.get(callId);
    return call !== undefined && isToJudge(context, call);
  });
  const judgedCalls = [
    ...(context.judgedCalls ?? []).filter((callId) => calls.get(callId)?.state === 'planned'),
    ...judgements.map(({ callId }) => callId),
  ];
  enqueue.assign({ judgedCalls });
  startJudged({ ...context, judgedCalls, judgements }, context.progress, enqueue);
}

/** The machine takes results in the order in which the calls ended. */
function ended(before: Progress, callId: string, result: ToolOutput): Progress {
  const progress = recordResult(before, callId, result);
  return progress.openStep ? { ...progress, openStep: endedLast(progress.openStep, callId) } : progress;
}

/** A result is stored with the transition that takes it. One of a call that was stopped is dropped. */
export function keepCallResult(context: RunContext, answer: ToolAnswer, enqueue: Enqueue): void {
  const { callId, result, isUnbegun, isLeft, parks, wait } = answer;
  const { openStep } = context.progress;
  const call = openStep && callOf(openStep, callId);
  if (!call) return;
  if (isLeft || parks) {
    const stops = parks && !context.cause ? parked(context, parks) : {};
    enqueue.assign({ leftCalls: [...context.leftCalls, callId], ...stops });
    return;
  }
  if (wait) {
    holdCall(context, wait, enqueue);
    return;
  }
  const progress = isUnbegun ? withdrawCalls(context.progress, [call]) : ended(context.progress, callId, result);
  enqueue.assign({ progress, places: withoutPlace(context.places, callId) });
}
