import { assign, emit, enqueueActions, fromPromise, setup, spawnChild, stopChild } from 'xstate';
import { type ErrorData, toErrorData } from '../src/run/error-data.ts';
import { StepLimitError } from '../src/run/errors.ts';
import { type CheckpointOutcome, classifyCheckpointOutcome } from '../src/run/finalize.ts';
import { toolLoopOf } from '../src/run/limits.ts';
import { type Message, toolCallsOf } from '../src/run/message.ts';
import { callsToStart, isAllAnswered, type OpenCall } from '../src/run/open-step.ts';
import {
  closeStep,
  deliver,
  openStep,
  type Progress,
  recordAnswer,
  recordResult,
  startCalls,
  withdrawCalls,
} from '../src/run/progress.ts';
import type { ModelReply } from '../src/run/reply.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { Transcript } from '../src/run/transcript.ts';
import type {
  ModelAnswer,
  Resolution,
  RunContext,
  RunEmitted,
  RunInput,
  RunMachineEvent,
  ToolAnswer,
} from './context.ts';

function notProvided(): never {
  throw new Error('this actor is provided by the executor: use executor.logic(agent), or machine.provide({ actors })');
}

/** The named pieces that the charts of `run.ts` and `loop.ts` are made of. */
export const pieces = setup({
  types: {
    context: {} as RunContext,
    input: {} as RunInput,
    output: {} as RunOutput,
    events: {} as RunMachineEvent,
    emitted: {} as RunEmitted,
    meta: {} as { resumesAt?: 'here' },
  },
  actors: {
    resolve: fromPromise<Resolution, { progress: Progress }>(notProvided),
    'call-model': fromPromise<ModelAnswer, { transcript: Transcript; iteration: number }>(notProvided),
    'call-tool': fromPromise<ToolAnswer, { call: OpenCall; progress: Progress }>(notProvided),
    settle: fromPromise<
      RunOutput,
      { outcome: CheckpointOutcome; progress: Progress; error?: ErrorData; cause?: ErrorData }
    >(notProvided),
  },
  guards: {
    hasOpenStep: ({ context }) => context.progress.openStep !== undefined,
    isStepAnswered: ({ context }) =>
      context.progress.openStep !== undefined && isAllAnswered(context.progress.openStep),
    /** Whether this is the result of the only call of the open step that has not answered. */
    isLastResult: ({ context: { progress } }, { callId }: ToolAnswer) =>
      progress.openStep?.calls.every(({ state, callId: id }) => state === (id === callId ? 'started' : 'done')) ??
      false,
    isToolLoop: ({ context }) => toolLoopOf(context.progress.counters, context.limits) !== undefined,
    isOutOfSteps: ({ context }) => context.progress.iteration >= context.limits.maxIterations,
    isLanded: ({ context }) => context.landed >= context.announced,
    isLandedWithCalls: ({ context: { landed, announced, reply } }) =>
      landed >= announced && reply !== undefined && toolCallsOf(reply.message).length > 0,
    isModelError: (_, answer: ModelAnswer) => 'error' in answer,
    hasOutput: ({ context }) => context.output !== undefined,
    hasOutcome: ({ context }) => context.progress.outcome !== undefined,
    hasEnded: ({ context }) => context.error !== undefined,
    isComplete: ({ context }) => classifyCheckpointOutcome(context.error, context.cause) === 'complete',
    isLeaveRunning: ({ context }) => classifyCheckpointOutcome(context.error, context.cause) === 'leave-running',
  },
  actions: {
    adopt: assign((_, resolution: Resolution) => adopted(resolution)),
    announceAccepted: emit({ type: 'run.accepted' }),
    announceWork: emit({ type: 'run.working' }),
    /** The first cause stands; the executor aborts the work with it. */
    stop: enqueueActions(({ context, enqueue }, cause: ErrorData) => {
      if (context.cause) return;
      enqueue.assign({ cause, error: context.error ?? cause });
      enqueue.emit({ type: 'run.stopping', cause });
    }),
    markLanded: assign(({ context }, boundary: number) => ({ landed: Math.max(context.landed, boundary) })),
    keepReply: assign((_, answer: ModelAnswer) =>
      'reply' in answer ? { reply: answer.reply } : { error: answer.error },
    ),
    openStep: assign(({ context }) => (context.reply ? opened(context, context.reply) : {})),
    recordAnswer: enqueueActions(({ context, enqueue }) => {
      if (!context.reply) return;
      const progress = recordAnswer(context.progress, context.reply);
      enqueue.assign({ progress, reply: undefined as never });
      enqueue.emit({ type: 'step.done', progress, tools: [] });
    }),
    blameToolLoop: assign(({ context }) => {
      const error = toolLoopOf(context.progress.counters, context.limits);
      return error ? { error: toErrorData(error) } : {};
    }),
    blameStepLimit: assign(({ context }) => ({
      error: toErrorData(new StepLimitError(`no answer after ${context.limits.maxIterations} steps (maxIterations)`)),
    })),
    keepOutput: assign((_, output: RunOutput) => ({ output })),
    forgetChild: stopChild((_, id: string) => id),
    /** Moves the answered step into the transcript and announces it, with the last result where one has just come. */
    closeStep: enqueueActions(({ context, enqueue }, last: ToolAnswer | undefined) => {
      const answered = last ? recordResult(context.progress, last.callId, last.result) : context.progress;
      const force = answered.openStep?.calls.some((call) => call.effect !== 'read') ?? false;
      const tools = answered.openStep?.calls.map((call) => call.name) ?? [];
      const progress = closeStep(answered);
      const boundary = context.announced + 1;
      enqueue.assign({ progress, intents: [], announced: context.isDurable ? boundary : context.announced });
      enqueue.emit({ type: 'step.done', progress, tools });
      if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force, progress });
    }),
    /** A steered message is stored at once, apart from the transcript, until the next turn takes it in. */
    queueSteering: enqueueActions(
      ({ context, enqueue }, { message, receipt }: { message: Message; receipt: string }) => {
        const progress = { ...context.progress, undelivered: [...context.progress.undelivered, message] };
        const boundary = context.isDurable ? context.announced + 1 : context.announced;
        enqueue.assign({ progress, announced: boundary });
        enqueue.emit({ type: 'steer.queued', receipt, boundary });
        if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'steer', force: true, progress });
      },
    ),
    /** Takes the waiting messages into the transcript: both stand in one record, so that none is lost or doubled. */
    applySteering: enqueueActions(({ context, enqueue }) => {
      const count = context.progress.undelivered.length;
      if (count === 0) return;
      enqueue.assign({ progress: deliver(context.progress) });
      enqueue.emit({ type: 'steer.applied', count });
    }),
    /** Starts what may start now. Calls with effects wait until the intent to run them is recorded. */
    startTools: enqueueActions(({ context, enqueue }) => startTools(context, context.progress, enqueue)),
    /** A result of a call with effects is recorded as it arrives (its siblings do not wait for it), and others may start. */
    takeResult: enqueueActions(({ context, enqueue }, { callId, result }: ToolAnswer) => {
      const progress = recordResult(context.progress, callId, result);
      const step = progress.openStep;
      const call = step?.calls.find((candidate) => candidate.callId === callId);
      const isAnnounced = context.isDurable && step && !isAllAnswered(step) && call && call.effect !== 'read';
      const announced = isAnnounced ? context.announced + 1 : context.announced;
      enqueue.assign({ progress, announced });
      if (isAnnounced) enqueue.emit({ type: 'boundary', boundary: announced, kind: 'result', force: true, progress });
      startTools({ ...context, announced }, progress, enqueue);
    }),
    /** Runs the calls whose intent has landed. */
    startIntended: enqueueActions(({ context, enqueue }) => {
      const due = context.intents.filter((intent) => intent.boundary <= context.landed);
      if (due.length === 0) return;
      enqueue.assign({ intents: context.intents.filter((intent) => intent.boundary > context.landed) });
      for (const { calls } of due) {
        for (const call of calls) enqueue.spawnChild('call-tool', callToolOf(call, context.progress));
      }
    }),
    startModelCall: spawnChild('call-model', {
      id: ({ context }) => modelCallId(context.progress.iteration),
      input: ({ context: { progress } }) => ({ transcript: progress.transcript, iteration: progress.iteration }),
    }),
    stopModelCall: stopChild(({ context }) => modelCallId(context.progress.iteration)),
    stopTools: enqueueActions(({ context, self, enqueue }) => {
      const unbegun = context.intents.flatMap((intent) => intent.calls);
      if (unbegun.length > 0) enqueue.assign({ progress: withdrawCalls(context.progress, unbegun), intents: [] });
      for (const id of Object.keys(self.getSnapshot().children)) if (id.startsWith('tool.')) enqueue.stopChild(id);
    }),
  },
});

type Enqueue = {
  readonly assign: (change: Partial<RunContext>) => void;
  readonly emit: (event: RunEmitted) => void;
  readonly spawnChild: (src: 'call-tool', options: ReturnType<typeof callToolOf>) => void;
};

function startTools(context: RunContext, progress: Progress, enqueue: Enqueue): void {
  const { limits, tools } = context;
  const ofTool = (name: string) => (Object.hasOwn(tools, name) && tools[name]?.concurrency) || limits.toolConcurrency;
  const calls = progress.openStep ? callsToStart(progress.openStep, { all: limits.toolConcurrency, ofTool }) : [];
  if (calls.length === 0) return;
  const started = startCalls(progress, new Set(calls.map((call) => call.callId)));
  const now = calls.map((call) => ({ ...call, state: 'started' as const, attempt: call.attempt + 1 }));
  const isIntent = (call: OpenCall) => context.isDurable && call.effect !== 'read';
  const intended = now.filter(isIntent);
  if (intended.length === 0) {
    enqueue.assign({ progress: started });
  } else {
    const boundary = context.announced + 1;
    enqueue.assign({
      progress: started,
      announced: boundary,
      intents: [...context.intents, { boundary, calls: intended }],
    });
    enqueue.emit({ type: 'boundary', boundary, kind: 'intent', force: true, progress: started });
  }
  for (const call of now) if (!isIntent(call)) enqueue.spawnChild('call-tool', callToolOf(call, started));
}

function modelCallId(iteration: number): string {
  return `model.${iteration + 1}`;
}

/** Actor ids are ours (`tool.<step>.<position>`): what a model calls its calls is not to be trusted with a name. */
function callToolOf(call: OpenCall, progress: Progress) {
  const position = progress.openStep?.calls.findIndex((candidate) => candidate.callId === call.callId) ?? 0;
  return { id: `tool.${progress.iteration + 1}.${position}`, input: { call, progress } };
}

function opened({ progress, tools }: RunContext, reply: ModelReply): Partial<RunContext> & { reply?: never } {
  return { progress: openStep(progress, reply, tools), reply: undefined as never };
}

function adopted(resolution: Resolution): Partial<RunContext> {
  if (resolution.kind === 'answered') return { output: resolution.output };
  const { kind: _, ...found } = resolution;
  if (resolution.kind === 'refused') return found;
  const { outcome } = resolution.progress;
  return outcome ? { ...found, error: outcome.error as ErrorData, cause: undefined as never } : found;
}
