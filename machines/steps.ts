import { callOf } from '../src/run/open-step.ts';
import { closeStep, deliver, recordAnswer, recordResult, withdrawCalls } from '../src/run/progress.ts';
import { forgetNamed, withoutPlace } from './call-ids.ts';
import type { RunContext, RunMachineEvent, ToolAnswer } from './context.ts';
import { landedWith } from './guards.ts';
import { type Enqueue, startTools } from './tool-calls.ts';

interface Moment {
  readonly context: RunContext;
  readonly event: RunMachineEvent;
  readonly enqueue: Enqueue;
}

/** Takes the waiting messages into the transcript: both stand in one record, so that none is lost or doubled. */
export function applySteering({ progress }: RunContext, enqueue: Enqueue): void {
  const count = progress.undelivered.length + progress.nudges.length;
  if (count === 0) return;
  enqueue.assign({ progress: deliver(progress) });
  enqueue.emit({ type: 'steer.applied', count });
}

/** The reply is the last step. */
export function takeAnswer({ context, event, enqueue }: Moment): void {
  if (!context.reply) return;
  forgetNamed(context, event, enqueue);
  const progress = recordAnswer(context.progress, context.reply);
  enqueue.assign({ progress, reply: undefined as never, landed: landedWith(context, event) });
  enqueue.emit({ type: 'step.done', progress, tools: [] });
}

/** A result of a call with effects is recorded as it arrives (its siblings do not wait for it), and others may start. */
export function takeResult({ context, event, enqueue }: Moment, { callId, result, isUnbegun }: ToolAnswer): void {
  forgetNamed(context, event, enqueue);
  const { openStep } = context.progress;
  const call = openStep && callOf(openStep, callId);
  const progress =
    isUnbegun && call ? withdrawCalls(context.progress, [call]) : recordResult(context.progress, callId, result);
  const isAnnounced = context.isDurable && call && call.effect !== 'read';
  const announced = isAnnounced ? context.announced + 1 : context.announced;
  if (isAnnounced) enqueue.emit({ type: 'boundary', boundary: announced, kind: 'result', force: true, progress });
  const places = withoutPlace(context.places, callId);
  startTools({ ...context, announced, places }, progress, { enqueue, also: { announced, places } });
}

/** Moves the answered step into the transcript and announces it, with the last result where one has just come. */
export function endStep({ context, event, enqueue }: Moment, last: ToolAnswer | undefined): void {
  forgetNamed(context, event, enqueue);
  const answered = last ? recordResult(context.progress, last.callId, last.result) : context.progress;
  const force = answered.openStep?.calls.some((call) => call.effect !== 'read') ?? false;
  const tools = answered.openStep?.calls.map((call) => call.name) ?? [];
  const progress = closeStep(answered);
  // Of a phase that begins anew after a crash there is nothing to record yet.
  const isRecorded = context.isDurable && !progress.openPhase?.start;
  const boundary = context.announced + 1;
  enqueue.assign({ progress, intents: [], places: [], announced: isRecorded ? boundary : context.announced });
  enqueue.emit({ type: 'step.done', progress, tools });
  if (isRecorded) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force, progress });
}
