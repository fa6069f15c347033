import { callOf } from '../src/run/open-step.ts';
import { openStep, type Progress, recordSpent } from '../src/run/progress.ts';
import type { ModelReply } from '../src/run/reply.ts';
import { awaitModel, forgetModelWaits } from '../src/run/waits/model-waits.ts';
import type { Wait } from '../src/run/waits/wait.ts';
import { applyAnswer, applyJudgements, isMachineTimer, openWaits } from '../src/run/waits/wait-rules.ts';
import { type ErrorData, toErrorData } from '../src/values/error-data.ts';
import { RunParkedError, WaitExpiredError } from '../src/values/errors.ts';
import type { JudgeInput } from './actors.ts';
import { withoutPlace } from './call-ids.ts';
import type { ModelAnswer, RunContext, RunMachineEvent } from './context.ts';
import { announceRefused, type Enqueue, phaseOf, startTools } from './tool-calls.ts';

/* How a run begins to wait, and what an answer does: the parts of `setup.ts` about waits. */

/** Returns the input of the effect that judges the calls of a reply: the step that the reply is about to open. */
export function judgeInputOf(
  progress: Progress,
  reply: ModelReply | undefined,
  tools: RunContext['tools'],
): JudgeInput {
  return { progress: reply ? openStep(progress, reply, tools) : progress, ...phaseOf(progress.openPhase) };
}

export type AnswerEvent = Extract<RunMachineEvent, { type: 'wait.answer' }>;

/**
 * Opens the step of a reply after its calls were judged. Calls that a person has to approve wait; one save has the message,
 * the calls and the waits.
 */
export function startJudged(context: RunContext, opened: Progress, enqueue: Enqueue): void {
  const { judgements, persisted } = context;
  const also = { reply: undefined as never, judgements: undefined as never, isUnjudged: false, persisted };
  if (!judgements) return void startTools(context, opened, { enqueue, also });
  const judged = applyJudgements(opened, judgements);
  const waits = judgements.flatMap((each) => (each.verdict === 'ask' ? [each.wait] : []));
  const denied = new Set(
    judgements.flatMap(({ verdict, callId }) => (verdict === 'deny' || verdict === 'unfit' ? [callId] : [])),
  );
  announceRefused(judged, enqueue, ({ callId }) => denied.has(callId));
  const boundary = startTools(context, judged, {
    enqueue,
    also,
    save: waits.length > 0 || denied.size > 0 ? 'wait' : undefined,
  });
  if (waits.length > 0) enqueue.emit({ type: 'waits.opened', waits, boundary: boundary ?? context.requested });
}

/** Keeps the wait of a run for its model, and requests a save of it. */
export function keepOutage(context: RunContext, answer: ModelAnswer, enqueue: Enqueue): void {
  if (!('error' in answer) || !answer.wait) return;
  const progress = awaitModel(recordSpent(context.progress, answer), answer.wait);
  const boundary = context.isDurable ? context.requested + 1 : context.requested;
  enqueue.assign({ progress, requested: boundary });
  if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'wait', force: true, progress });
  enqueue.emit({ type: 'waits.opened', waits: [answer.wait], boundary });
}

/**
 * Returns the context of a run that stops with its record parked for this error. An outage ends with it: after `unpark` the run
 * asks its model as if for the first time.
 */
export function parked({ progress }: RunContext, why: ErrorData): Partial<RunContext> {
  const { code, message: reason } = why;
  const error = toErrorData(new RunParkedError(`run ${progress.meta.runId} is parked: ${reason}`, { cause: why }));
  return { progress: { ...forgetModelWaits(progress), parked: { code, reason } }, error, cause: error };
}

/**
 * Applies the answer of a wait, and starts the call that it allows: the answer, its effect on the call, and the start of
 * the call are one save.
 */
export function takeWaitAnswer(context: RunContext, { answer, receipt }: AnswerEvent, enqueue: Enqueue): void {
  const answered = applyAnswer(context.progress, answer);
  if (!('progress' in answered)) {
    const { kind: why, ...rest } = answered;
    enqueue.emit({ type: 'answer.refused', receipt, why, ...rest });
    return;
  }
  const { kind: _, progress, ends, ...rest } = { ends: undefined, ...answered };
  if (ends) {
    // The save of the end has the expiry too: no crash between two saves leaves a run that neither waits nor ends.
    enqueue.assign(endedBy(ends, { ...context, progress }, rest.wait));
    enqueue.emit({ type: 'answer.taken', receipt, boundary: context.requested, ...rest });
    return;
  }
  if (isMachineTimer(rest.wait)) {
    // The machine takes it now: the save of that has both.
    enqueue.assign({ progress });
    enqueue.emit({ type: 'answer.taken', receipt, boundary: context.requested + 1, ...rest });
    return;
  }
  const boundary = startTools({ ...context, progress }, progress, { enqueue, also: {}, save: 'answer' });
  enqueue.emit({ type: 'answer.taken', receipt, boundary: boundary ?? context.requested, ...rest });
  const { kind, callId = '' } = rest.wait;
  const call = kind === 'approval' && progress.openStep ? callOf(progress.openStep, callId) : undefined;
  if (call?.state === 'done') enqueue.emit({ type: 'call.refused', step: progress.iteration + 1, call });
}

/** No person decided in time: nothing starts any more, and the run fails or parks when no call is running. */
function endedBy(ends: 'fail' | 'park', context: RunContext, { tool }: Wait): Partial<RunContext> {
  const error = toErrorData(new WaitExpiredError(`no person decided about ${tool ?? 'a call'} in time`));
  if (ends === 'fail') return { progress: context.progress, error, cause: error };
  return parked(context, error);
}

/** Suspends a running call that needs something from outside: it gives its place back, and waits. */
export function holdCall(context: RunContext, wait: Wait, enqueue: Enqueue): void {
  const { openStep } = context.progress;
  const callId = wait.callId ?? '';
  const isRunning = openStep && callOf(openStep, callId)?.state === 'started';
  const places = withoutPlace(context.places, callId);
  if (!isRunning) {
    enqueue.assign({ places });
    return;
  }
  const progress = openWaits(context.progress, [wait]);
  const boundary = startTools({ ...context, places }, progress, { enqueue, also: { places }, save: 'wait' });
  enqueue.emit({ type: 'waits.opened', waits: [wait], boundary: boundary ?? context.requested });
}
