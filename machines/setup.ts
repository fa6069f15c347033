import { assign, emit, enqueueActions, setup, spawnChild } from 'xstate';
import { toolLoopOf } from '../src/run/limits.ts';
import { callOf, type OpenCall } from '../src/run/open-step.ts';
import { askForRepair, beginPhase, closePhase, currentPhase } from '../src/run/pipeline.ts';
import {
  closeStep,
  deliver,
  openStep,
  recordAnswer,
  recordResult,
  recordSpent,
  withdrawCalls,
} from '../src/run/progress.ts';
import type { RunOutput } from '../src/run/result.ts';
import { forgetModelWaits } from '../src/run/waits/model-waits.ts';
import type { Judgement } from '../src/run/waits/wait-rules.ts';
import { outboxOf, type WorkflowAdvance, withOutbox } from '../src/run/workflow/advanced.ts';
import { type ErrorData, toErrorData } from '../src/values/error-data.ts';
import { OutputInvalidError, StepLimitError } from '../src/values/errors.ts';
import { type Message, textOf } from '../src/values/message.ts';
import { actors } from './actors.ts';
import { answeredCallId, forgetNamed, modelCallId, withoutPlace } from './call-ids.ts';
import {
  type ModelAnswer,
  type OutputCheck,
  type Resolution,
  type RunContext,
  type RunEmitted,
  type RunInput,
  type RunMachineEvent,
  type Steer,
  type ToolAnswer,
  unresolved,
} from './context.ts';
import { guards, persistedWith } from './guards.ts';
import { countProgress, holdNudge, holdSteering, queueHeld, queueNudge, queueSteering } from './steering.ts';
import { announceRefused, callToolOf, type Enqueue, phaseOf, startTools, withdrawIntents } from './tool-calls.ts';
import { type AnswerEvent, holdCall, keepOutage, parked, startJudged, takeWaitAnswer } from './waiting.ts';
import { applyAdvance, enterEvent, keepCallResult, startJudgedCalls } from './workflow-calls.ts';

/** The named parts of the charts of `run.ts` and `loop.ts`. */
export const pieces = setup({
  types: {
    context: {} as RunContext,
    input: {} as RunInput,
    output: {} as RunOutput,
    events: {} as RunMachineEvent,
    emitted: {} as RunEmitted,
    meta: {} as { resumesAt?: 'here' },
  },
  actors,
  guards,
  actions: {
    adopt: assign(({ context }, resolution: Resolution) => adopted(context, resolution)),
    announceAccepted: emit({ type: 'run.accepted' }),
    announceWork: emit({ type: 'run.working', state: 'running' }),
    /** The first cause stays. The executor aborts the work with it, also for a run that was waiting for its calls to end. */
    stop: enqueueActions(({ context, enqueue }, given: ErrorData) => stop(context, given, enqueue)),
    /** No call begins from now on; the first cause stays. Calls whose intent is being stored have not begun. */
    yieldSlice: enqueueActions(({ context, enqueue }, cause: ErrorData) => {
      if (context.yielding) return;
      enqueue.assign({ yielding: cause });
      withdrawIntents(context, enqueue);
    }),
    stopSlice: enqueueActions(({ context, enqueue }) => {
      if (context.yielding) stop(context, context.yielding, enqueue);
    }),
    /** The run continues until it is free to stop, and begins nothing new; the first cause stays. */
    keepCause: enqueueActions(({ context, enqueue }, cause: ErrorData) => {
      if (context.cause) return;
      enqueue.assign({ cause, error: context.error ?? cause });
      withdrawIntents(context, enqueue);
    }),
    announceStop: enqueueActions(({ context, enqueue }) => {
      if (context.cause) enqueue.emit({ type: 'run.stopping', cause: context.cause });
    }),
    markPersisted: assign(({ context }, boundary: number) => ({ persisted: Math.max(context.persisted, boundary) })),
    keepReply: assign(({ context }, answer: ModelAnswer) =>
      'reply' in answer
        ? { reply: answer.reply, progress: forgetModelWaits(context.progress) }
        : { error: answer.error, progress: recordSpent(context.progress, answer) },
    ),
    /** The model is away: the run waits for it, with the cost of the failed attempts. */
    keepOutage: enqueueActions(({ context, enqueue }, answer: ModelAnswer) => keepOutage(context, answer, enqueue)),
    /** The run stops, and its record stays parked until a person unparks it. */
    park: assign(({ context }, given: ModelAnswer) => ('error' in given ? parked(context, given.error) : {})),
    /** The run stops, and its record stays. */
    giveBack: assign((_, given: ModelAnswer) => ('error' in given ? { cause: given.error } : {})),
    startJudgedCalls: enqueueActions(({ context, enqueue }, judgements: readonly Judgement[]) =>
      startJudgedCalls(context, judgements, enqueue),
    ),
    keepJudgements: assign((_, judgements: readonly Judgement[]) => ({ judgements })),
    /** An answer to a wait, an expiry, or the end of a child. */
    answerWait: enqueueActions(({ context, enqueue }, given: AnswerEvent) => takeWaitAnswer(context, given, enqueue)),
    announceWaiting: emit(({ context }) => ({ type: 'waiting.began', progress: context.progress })),
    announceWoken: emit({ type: 'waiting.ended' }),
    recordAnswer: enqueueActions((moment) => takeAnswer(moment)),
    applyAdvance: enqueueActions(({ context, enqueue }, advanced: WorkflowAdvance) =>
      applyAdvance(context, advanced, enqueue),
    ),
    enterEvent: enqueueActions(({ context, enqueue }, given: Extract<RunMachineEvent, { type: 'workflow.event' }>) =>
      enterEvent(context, given, enqueue),
    ),
    ignoreEvent: enqueueActions(({ context, enqueue }, { id }: { readonly id: string }) =>
      enqueue.emit({ type: 'event.entered', id, boundary: context.requested }),
    ),
    forgetMessage: assign(({ context: { progress } }, gone: string) => ({
      progress: withOutbox(
        progress,
        outboxOf(progress).filter(({ id }) => id !== gone),
      ),
    })),
    keepCallResult: enqueueActions(({ context, enqueue }, answer: ToolAnswer) =>
      keepCallResult(context, answer, enqueue),
    ),
    keepData: assign((_, check: OutputCheck) => ('data' in check ? { data: check.data } : {})),
    askForRepair: enqueueActions(({ context, enqueue }, check: OutputCheck) => repairAnswer(context, check, enqueue)),
    blameOutput: assign((_, check: OutputCheck) => ({
      error: toErrorData(new OutputInvalidError('problem' in check ? check.problem : '')),
    })),
    blameToolLoop: assign(({ context }) => {
      const error = toolLoopOf(context.progress.counters, context.limits);
      return error ? { error: toErrorData(error) } : {};
    }),
    blameStepLimit: assign(({ context: { limits, progress, phases } }) => {
      const most = currentPhase(progress, phases)?.maxSteps ?? limits.maxSteps + progress.raisedSteps;
      return { error: toErrorData(new StepLimitError(`no answer after ${most} steps (maxSteps)`)) };
    }),
    forgetError: assign({ error: undefined as never }),
    keepOutput: assign((_, output: RunOutput) => ({ output })),
    keepCancel: enqueueActions(({ enqueue }, cancel: ErrorData) => {
      enqueue.assign({ cancel });
      enqueue.emit({ type: 'run.cancelling', cause: cancel });
    }),
    beginAgain: assign(({ context: { cancel } }, input: RunInput) => begunAgain(input, cancel)),
    raiseSteps: assign(({ context: { progress } }, by: number) => ({
      progress: { ...progress, raisedSteps: progress.raisedSteps + by },
    })),
    beginPhase: enqueueActions(({ context, enqueue }) => enterPhase(context, enqueue)),
    closePhase: enqueueActions(({ context, enqueue }) => leavePhase(context, enqueue)),
    closeStep: enqueueActions((moment, last: ToolAnswer | undefined) => endStep(moment, last)),
    /** Messages to a run that is still resolving wait until its record is loaded. */
    holdSteering: enqueueActions(({ context, enqueue }, steer: Steer) => holdSteering(context, steer, enqueue)),
    holdNudge: enqueueActions(({ context, enqueue }, message: Message) => holdNudge(context, message, enqueue)),
    holdRaise: assign(({ context }, by: number) => ({ heldSteps: context.heldSteps + by })),
    queueHeld: enqueueActions(({ context, enqueue }) => queueHeld(context, enqueue)),
    /** A steered message is stored at once, apart from the transcript, until the next turn takes it. */
    queueSteering: enqueueActions(({ context, enqueue }, steer: Steer) => queueSteering(context, [steer], enqueue)),
    /** Messages of the critic wait as well, after those of the host. */
    queueNudge: enqueueActions(({ context, enqueue }, message: Message) => queueNudge(context, message, enqueue)),
    forgetCommands: assign(({ context: { progress } }, gone: readonly string[]) => ({
      progress: { ...progress, commands: progress.commands.filter((id) => !gone.includes(id)) },
    })),
    countProgress: enqueueActions(({ context, enqueue }) => countProgress(context, enqueue)),
    applySteering: enqueueActions(({ context, enqueue }) => applySteering(context, enqueue)),
    /**
     * The reply's calls become the open step; calls of an open step start if they may. Effects wait until their intent is
     * stored.
     */
    startTools: enqueueActions(({ context, event, enqueue }) => {
      const { progress, reply, tools } = context;
      const persisted = persistedWith(context, event);
      forgetNamed(context, event, enqueue);
      if (!reply && !context.judgements) return startTools(context, progress, { enqueue });
      const opened = reply ? openStep(progress, reply, tools) : progress;
      if (reply?.refused) announceRefused(opened, enqueue);
      startJudged({ ...context, persisted }, opened, enqueue);
    }),
    takeResult: enqueueActions((moment, answer: ToolAnswer) => takeResult(moment, answer)),
    /** Runs the calls whose intent is stored. */
    startIntended: assign(({ context: { progress, intents, ...context }, event, spawn }) => {
      const persisted = persistedWith(context, event);
      const due = intents.filter((intent) => intent.boundary <= persisted);
      for (const { calls } of due) for (const call of calls) spawn('call-tool', callToolOf(call, progress, context));
      return {
        persisted,
        intents: due.length === 0 ? intents : intents.filter((intent) => intent.boundary > persisted),
      };
    }),
    startModelCall: spawnChild('call-model', {
      id: ({ context }) => modelCallId(context),
      input: ({ context: { progress } }) => ({
        transcript: progress.transcript,
        iteration: progress.iteration,
        turn: (progress.openPhase?.iteration ?? progress.iteration) + 1,
        completedPhases: progress.completedPhases,
        ...phaseOf(progress.openPhase),
      }),
    }),
    /** Stops all work, and withdraws calls that have not begun. */
    stopWork: enqueueActions(({ context, self, enqueue }) => {
      const unbegun = context.intents.flatMap((intent) => intent.calls);
      if (unbegun.length > 0) enqueue.assign({ progress: withdrawCalls(context.progress, unbegun), intents: [] });
      for (const child of Object.values(self.getSnapshot().children)) {
        if (child?.getSnapshot().status === 'active') enqueue.stopChild(child);
      }
    }),
  },
});

function stop(context: RunContext, given: ErrorData, enqueue: Enqueue): void {
  const cause = context.cause ?? given;
  enqueue.assign({ cause, error: context.error ?? cause });
  enqueue.emit({ type: 'run.stopping', cause });
}

/** All that a try may leave in the context. */
const nothingTried = {
  reply: undefined,
  judgements: undefined,
  isUnjudged: undefined,
  error: undefined,
  data: undefined,
  cause: undefined,
  yielding: undefined,
  output: undefined,
  restored: undefined,
  isPassing: undefined,
} as never;

/** The next try of a run that was left. One that its host has cancelled meanwhile ends as soon as it is found. */
function begunAgain(input: RunInput, cancel: ErrorData | undefined): Partial<RunContext> {
  const stop = cancel ? { error: cancel, cause: cancel } : {};
  return { ...unresolved, ...(nothingTried as object), ...stop, ...input };
}

function adopted({ cause }: RunContext, resolution: Resolution): Partial<RunContext> {
  if (resolution.kind === 'answered') return { output: resolution.output };
  const { kind: _, ...found } = resolution;
  // Held messages are dropped with the refused run; their senders get the refusal.
  if (resolution.kind === 'refused') {
    // The run was not there to be cancelled: the cancel waits for it.
    const isLeft = resolution.isPassing || resolution.cause !== undefined;
    const waiting = isLeft && cause?.code === 'CANCELLED' ? { cancel: cause } : {};
    return { ...found, ...waiting, held: [], heldNudges: [], heldSteps: 0 };
  }
  const { outcome } = resolution.progress;
  return outcome ? { ...found, error: outcome.error as ErrorData, cause: undefined as never } : found;
}

/** Begins a phase, or continues the one that was in progress. */
function enterPhase({ progress, phases }: RunContext, enqueue: Enqueue): void {
  const facts = currentPhase(progress, phases);
  if (!facts) return;
  const index = progress.completedPhases.length;
  enqueue.emit({ type: 'run.working', state: `phase(${index})` });
  if (progress.openPhase) return;
  enqueue.assign({ progress: beginPhase(progress, facts) });
  enqueue.emit({ type: 'phase.started', index, name: facts.name });
}

/** Records the phase's output. The error that ended it is dropped: the pipeline continues. */
function leavePhase(context: RunContext, enqueue: Enqueue): void {
  const facts = currentPhase(context.progress, context.phases);
  if (!facts) return;
  const hasFailed = context.error !== undefined && context.error.code !== 'STEP_LIMIT';
  const progress = closePhase(context.progress, facts, { hasFailed, data: context.data });
  const index = progress.completedPhases.length - 1;
  const boundary = context.requested + 1;
  enqueue.assign({
    progress,
    error: undefined as never,
    requested: context.isDurable ? boundary : context.requested,
  });
  const output = progress.completedPhases[index]?.output ?? '';
  enqueue.emit({ type: 'phase.done', index, name: facts.name, output });
  if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'phase', force: true, progress });
}

/** The answer stays in the conversation; its problem follows it, and the model has another turn. */
function repairAnswer(context: RunContext, check: OutputCheck, enqueue: Enqueue): void {
  const progress = askForRepair(context.progress, 'problem' in check ? check.problem : '');
  const boundary = context.requested + 1;
  enqueue.assign({ progress, requested: context.isDurable ? boundary : context.requested });
  if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force: false, progress });
}

interface Moment {
  readonly context: RunContext;
  readonly event: RunMachineEvent;
  readonly enqueue: Enqueue;
}

/** Moves the waiting messages into the transcript: both are in one record, so that none is lost or doubled. */
function applySteering({ progress }: RunContext, enqueue: Enqueue): void {
  const count = progress.undelivered.length + progress.nudges.length;
  if (count === 0) return;
  const texts = [...progress.undelivered, ...progress.nudges].map(textOf);
  enqueue.assign({ progress: deliver(progress) });
  enqueue.emit({ type: 'steer.applied', count, texts });
}

/** The reply is the last step. */
function takeAnswer({ context, event, enqueue }: Moment): void {
  if (!context.reply) return;
  forgetNamed(context, event, enqueue);
  const progress = recordAnswer(context.progress, context.reply);
  enqueue.assign({ progress, reply: undefined as never, persisted: persistedWith(context, event) });
  enqueue.emit({ type: 'step.done', progress, message: context.reply.message, tools: [] });
}

/** A result of a call with effects is recorded as it arrives (it does not wait for other calls), and others may start. */
function takeResult({ context, event, enqueue }: Moment, answer: ToolAnswer): void {
  const { result, isUnbegun, isLeft, parks, wait } = answer;
  const callId = answeredCallId(context.progress, answer);
  if (callId === undefined) throw new TypeError(`no open call has the id ${JSON.stringify(answer.callId)}`);
  forgetNamed(context, event, enqueue);
  if (isLeft || parks) {
    // A run that stops already is left with this call: its next start parks it.
    const stops = parks && !context.cause ? parked(context, parks) : {};
    enqueue.assign({ leftCalls: [...context.leftCalls, callId], ...stops });
    return;
  }
  if (wait) {
    holdCall(context, wait, enqueue);
    return;
  }
  const { openStep } = context.progress;
  const call = openStep && callOf(openStep, callId);
  const progress =
    isUnbegun && call ? withdrawCalls(context.progress, [call]) : recordResult(context.progress, callId, result);
  const isRequested = context.isDurable && call && call.effect !== 'read';
  const requested = isRequested ? context.requested + 1 : context.requested;
  if (isRequested) enqueue.emit({ type: 'boundary', boundary: requested, kind: 'result', force: true, progress });
  const places = withoutPlace(context.places, callId);
  startTools({ ...context, requested, places }, progress, { enqueue, also: { requested, places } });
}

/** Moves the answered step into the transcript and announces it, with the last result if it has just arrived. */
function endStep({ context, event, enqueue }: Moment, last: ToolAnswer | undefined): void {
  forgetNamed(context, event, enqueue);
  const callId = last && answeredCallId(context.progress, last);
  const answered =
    !last || callId === undefined ? context.progress : recordResult(context.progress, callId, last.result);
  const isKept = ({ effect, allowed, answers }: OpenCall) =>
    effect !== 'read' || allowed !== undefined || answers !== undefined;
  const force = answered.openStep?.calls.some(isKept) ?? false;
  const tools = answered.openStep?.calls.map((call) => call.name) ?? [];
  const progress = closeStep(answered);
  // A phase that begins again after a crash has nothing to record yet.
  const isRecorded = context.isDurable && !progress.openPhase?.start;
  const boundary = context.requested + 1;
  enqueue.assign({ progress, intents: [], places: [], requested: isRecorded ? boundary : context.requested });
  enqueue.emit({ type: 'step.done', progress, message: answered.openStep?.message, tools });
  if (isRecorded) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force, progress });
}
