import { assign, emit, enqueueActions, setup, spawnChild } from 'xstate';
import { type ErrorData, toErrorData } from '../src/run/error-data.ts';
import { OutputInvalidError, StepLimitError } from '../src/run/errors.ts';
import type { CheckpointOutcome } from '../src/run/finalize.ts';
import type { JsonValue } from '../src/run/json.ts';
import { toolLoopOf } from '../src/run/limits.ts';
import type { Message } from '../src/run/message.ts';
import type { PhaseOutput } from '../src/run/phase.ts';
import { askForRepair, beginPhase, closePhase, currentPhase } from '../src/run/pipeline.ts';
import {
  closeStep,
  deliver,
  openStep,
  type Progress,
  recordAnswer,
  recordResult,
  recordSpent,
  withdrawCalls,
} from '../src/run/progress.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { Transcript } from '../src/run/transcript.ts';
import { forgetNamed, modelCallId } from './call-ids.ts';
import type {
  ModelAnswer,
  OutputCheck,
  Resolution,
  RunContext,
  RunEmitted,
  RunInput,
  RunMachineEvent,
  Steer,
  ToolAnswer,
} from './context.ts';
import { guards, landedWith } from './guards.ts';
import { countProgress, queueHeld, queueNudge, queueSteering } from './steering.ts';
import { task } from './task.ts';
import { callToolOf, phaseOf, startTools, type ToolCallInput } from './tool-calls.ts';

function notProvided(): never {
  throw new Error('this actor is provided by the executor: use executor.logic(agent), or machine.provide({ actors })');
}

export interface ModelCallInput {
  readonly transcript: Transcript;
  readonly iteration: number;
  /** Of a pipeline: which phase asks, and what the ones before it left. */
  readonly phase?: number;
  readonly completedPhases: readonly PhaseOutput[];
}

export interface SettleInput {
  readonly outcome: CheckpointOutcome;
  readonly progress: Progress;
  readonly error?: ErrorData;
  readonly cause?: ErrorData;
  readonly data?: JsonValue;
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
    resolve: task<Resolution, { progress: Progress }>(notProvided),
    'call-model': task<ModelAnswer, ModelCallInput>(notProvided),
    'call-tool': task<ToolAnswer, ToolCallInput>(notProvided),
    'check-output': task<OutputCheck, { progress: Progress }>(notProvided),
    'ask-critic': task<void>(notProvided),
    settle: task<RunOutput, SettleInput>(notProvided),
  },
  guards,
  actions: {
    adopt: assign((_, resolution: Resolution) => adopted(resolution)),
    announceAccepted: emit({ type: 'run.accepted' }),
    announceWork: emit({ type: 'run.working', state: 'running' }),
    /** The first cause stands; the executor aborts the work with it. */
    stop: enqueueActions(({ context, enqueue }, cause: ErrorData) => {
      if (context.cause) return;
      enqueue.assign({ cause, error: context.error ?? cause });
      enqueue.emit({ type: 'run.stopping', cause });
    }),
    /** The run goes on until it is free to stop; the first cause stands. */
    keepCause: assign(({ context }, cause: ErrorData) =>
      context.cause ? {} : { cause, error: context.error ?? cause },
    ),
    announceStop: enqueueActions(({ context, enqueue }) => {
      if (context.cause) enqueue.emit({ type: 'run.stopping', cause: context.cause });
    }),
    markLanded: assign(({ context }, boundary: number) => ({ landed: Math.max(context.landed, boundary) })),
    keepReply: assign(({ context }, answer: ModelAnswer) =>
      'reply' in answer
        ? { reply: answer.reply }
        : { error: answer.error, progress: recordSpent(context.progress, answer) },
    ),
    recordAnswer: enqueueActions(({ context, event, enqueue }) => {
      if (!context.reply) return;
      forgetNamed(context, event, enqueue);
      const progress = recordAnswer(context.progress, context.reply);
      enqueue.assign({ progress, reply: undefined as never, landed: landedWith(context, event) });
      enqueue.emit({ type: 'step.done', progress, tools: [] });
    }),
    keepData: assign((_, check: OutputCheck) => ('data' in check ? { data: check.data } : {})),
    /** The answer stays in the conversation; what is wrong with it follows it, and the model has another turn. */
    askForRepair: enqueueActions(({ context, enqueue }, check: OutputCheck) => {
      const progress = askForRepair(context.progress, 'problem' in check ? check.problem : '');
      const boundary = context.announced + 1;
      enqueue.assign({ progress, announced: context.isDurable ? boundary : context.announced });
      if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force: false, progress });
    }),
    blameOutput: assign((_, check: OutputCheck) => ({
      error: toErrorData(new OutputInvalidError('problem' in check ? check.problem : '')),
    })),
    blameToolLoop: assign(({ context }) => {
      const error = toolLoopOf(context.progress.counters, context.limits);
      return error ? { error: toErrorData(error) } : {};
    }),
    blameStepLimit: assign(({ context: { limits, progress, phases } }) => {
      const most = currentPhase(progress, phases)?.maxIterations ?? limits.maxIterations + progress.raisedSteps;
      return { error: toErrorData(new StepLimitError(`no answer after ${most} steps (maxIterations)`)) };
    }),
    forgetError: assign({ error: undefined as never }),
    keepOutput: assign((_, output: RunOutput) => ({ output })),
    raiseSteps: assign(({ context: { progress } }, by: number) => ({
      progress: { ...progress, raisedSteps: progress.raisedSteps + by },
    })),
    /** Begins a phase, or goes on with the one that was in progress. */
    beginPhase: enqueueActions(({ context: { progress, phases }, enqueue }) => {
      const facts = currentPhase(progress, phases);
      if (!facts) return;
      const index = progress.completedPhases.length;
      enqueue.emit({ type: 'run.working', state: `phase(${index})` });
      if (progress.openPhase) return;
      enqueue.assign({ progress: beginPhase(progress, facts) });
      enqueue.emit({ type: 'phase.started', index, name: facts.name });
    }),
    /** Takes the phase's output down. What ended it is forgotten: a pipeline that comes here goes on. */
    closePhase: enqueueActions(({ context, enqueue }) => {
      const facts = currentPhase(context.progress, context.phases);
      if (!facts) return;
      const hasFailed = context.error !== undefined && context.error.code !== 'STEP_LIMIT';
      const progress = closePhase(context.progress, facts, { hasFailed, data: context.data });
      const index = progress.completedPhases.length - 1;
      const boundary = context.announced + 1;
      enqueue.assign({
        progress,
        error: undefined as never,
        announced: context.isDurable ? boundary : context.announced,
      });
      const output = progress.completedPhases[index]?.output ?? '';
      enqueue.emit({ type: 'phase.done', index, name: facts.name, output });
      if (context.isDurable) enqueue.emit({ type: 'boundary', boundary, kind: 'phase', force: true, progress });
    }),
    /** Moves the answered step into the transcript and announces it, with the last result where one has just come. */
    closeStep: enqueueActions(({ context, event, enqueue }, last: ToolAnswer | undefined) => {
      forgetNamed(context, event, enqueue);
      const answered = last ? recordResult(context.progress, last.callId, last.result) : context.progress;
      const force = answered.openStep?.calls.some((call) => call.effect !== 'read') ?? false;
      const tools = answered.openStep?.calls.map((call) => call.name) ?? [];
      const progress = closeStep(answered);
      // Of a phase that begins anew after a crash there is nothing to record yet.
      const isRecorded = context.isDurable && !progress.openPhase?.start;
      const boundary = context.announced + 1;
      enqueue.assign({ progress, intents: [], announced: isRecorded ? boundary : context.announced });
      enqueue.emit({ type: 'step.done', progress, tools });
      if (isRecorded) enqueue.emit({ type: 'boundary', boundary, kind: 'step', force, progress });
    }),
    /** What is said to a run that is still resolving waits until its record is in hand. */
    holdSteering: assign(({ context }, steer: Steer) => ({ held: [...context.held, steer] })),
    holdNudge: assign(({ context }, message: Message) => ({ heldNudges: [...context.heldNudges, message] })),
    holdRaise: assign(({ context }, by: number) => ({ heldSteps: context.heldSteps + by })),
    queueHeld: enqueueActions(({ context, enqueue }) => queueHeld(context, enqueue)),
    /** A steered message is stored at once, apart from the transcript, until the next turn takes it in. */
    queueSteering: enqueueActions(({ context, enqueue }, steer: Steer) => queueSteering(context, [steer], enqueue)),
    /** What the critic says waits as well, and comes after what the host has said. */
    queueNudge: enqueueActions(({ context, enqueue }, message: Message) => queueNudge(context, message, enqueue)),
    forgetCommands: assign(({ context: { progress } }, gone: readonly string[]) => ({
      progress: { ...progress, commands: progress.commands.filter((id) => !gone.includes(id)) },
    })),
    countProgress: enqueueActions(({ context, enqueue }) => countProgress(context, enqueue)),
    /** Takes the waiting messages into the transcript: both stand in one record, so that none is lost or doubled. */
    applySteering: enqueueActions(({ context, enqueue }) => {
      const count = context.progress.undelivered.length + context.progress.nudges.length;
      if (count === 0) return;
      enqueue.assign({ progress: deliver(context.progress) });
      enqueue.emit({ type: 'steer.applied', count });
    }),
    /** The reply's calls become the open step; of an open step those start that may. Effects wait until their intent is recorded. */
    startTools: enqueueActions(({ context, event, enqueue }) => {
      const { progress, reply, tools } = context;
      const landed = landedWith(context, event);
      forgetNamed(context, event, enqueue);
      if (reply)
        startTools(context, openStep(progress, reply, tools), { enqueue, also: { reply: undefined as never, landed } });
      else startTools(context, progress, { enqueue });
    }),
    /** A result of a call with effects is recorded as it arrives (its siblings do not wait for it), and others may start. */
    takeResult: enqueueActions(({ context, event, enqueue }, { callId, result }: ToolAnswer) => {
      forgetNamed(context, event, enqueue);
      const progress = recordResult(context.progress, callId, result);
      const call = progress.openStep?.calls.find((candidate) => candidate.callId === callId);
      const isAnnounced = context.isDurable && call && call.effect !== 'read';
      const announced = isAnnounced ? context.announced + 1 : context.announced;
      if (isAnnounced) enqueue.emit({ type: 'boundary', boundary: announced, kind: 'result', force: true, progress });
      startTools({ ...context, announced }, progress, { enqueue, also: { announced } });
    }),
    /** Runs the calls whose intent has landed. */
    startIntended: assign(({ context: { progress, intents, ...context }, event, spawn }) => {
      const landed = landedWith(context, event);
      const due = intents.filter((intent) => intent.boundary <= landed);
      for (const { calls } of due) for (const call of calls) spawn('call-tool', callToolOf(call, progress, context));
      return { landed, intents: due.length === 0 ? intents : intents.filter((intent) => intent.boundary > landed) };
    }),
    startModelCall: spawnChild('call-model', {
      id: ({ context }) => modelCallId(context),
      input: ({ context: { progress } }) => ({
        transcript: progress.transcript,
        iteration: progress.iteration,
        completedPhases: progress.completedPhases,
        ...phaseOf(progress.openPhase),
      }),
    }),
    /** Stops whatever still works, and takes back what has not begun. */
    stopWork: enqueueActions(({ context, self, enqueue }) => {
      const unbegun = context.intents.flatMap((intent) => intent.calls);
      if (unbegun.length > 0) enqueue.assign({ progress: withdrawCalls(context.progress, unbegun), intents: [] });
      for (const child of Object.values(self.getSnapshot().children)) {
        if (child?.getSnapshot().status === 'active') enqueue.stopChild(child);
      }
    }),
  },
});

function adopted(resolution: Resolution): Partial<RunContext> {
  if (resolution.kind === 'answered') return { output: resolution.output };
  const { kind: _, ...found } = resolution;
  if (resolution.kind === 'refused') return found;
  const { outcome } = resolution.progress;
  return outcome ? { ...found, error: outcome.error as ErrorData, cause: undefined as never } : found;
}
