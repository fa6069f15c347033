import { classifyCheckpointOutcome, isParkedBy } from '../src/run/finalize.ts';
import { toolLoopOf } from '../src/run/limits.ts';
import { isAllAnswered, isIdle, isLastUnanswered } from '../src/run/open-step.ts';
import { currentPhase, isPhasePassable } from '../src/run/pipeline.ts';
import type { Progress } from '../src/run/progress.ts';
import { isOver, type RunOutput } from '../src/run/result.ts';
import { modelWaitOf } from '../src/run/waits/model-waits.ts';
import { outboxOf } from '../src/run/workflow/advanced.ts';
import { hasNews } from '../src/run/workflow/news.ts';
import { hasToolCalls, toolCallsOf } from '../src/values/message.ts';
import { answeredCallId } from './call-ids.ts';
import type { ModelAnswer, OutputCheck, RunContext, RunMachineEvent, ToolAnswer } from './context.ts';
import { isToJudge } from './tool-calls.ts';

/** An answer that does not fit its schema gets this many repair turns. */
const MAX_REPAIRS = 1;

type Context = { readonly context: RunContext };
type Moment = Context & { readonly event: RunMachineEvent };

/** The guards of the charts. */
export const guards = {
  /** Nothing comes before the next model call: no other guard of `entering` holds. */
  isFreeToAsk: ({ context }: Context) =>
    context.cause === undefined &&
    context.yielding === undefined &&
    context.progress.openStep === undefined &&
    modelWaitOf(context.progress) === undefined &&
    !isOutOfSteps(context) &&
    !isAnsweredToCheck(context) &&
    toolLoopOf(context.progress.counters, context.limits) === undefined,
  /** The open step has calls that no process has judged, and some must be. */
  hasUnjudgedStep: ({ context }: Context) => context.isUnjudged === true && mustJudgeStep(context),
  hasOpenStep: ({ context }: Context) => context.progress.openStep !== undefined,
  /** The slice is over: no call may begin. */
  isSliceOver: ({ context }: Context) => context.yielding !== undefined,
  /** The slice is over, and no call runs any more; child runs have been left. */
  isFreeToYield: ({ context: { yielding, progress, leftCalls } }: Context) =>
    yielding !== undefined &&
    !progress.openStep?.calls.some(({ state, callId }) => state === 'started' && !leftCalls.includes(callId)),
  /** The slice ended while the run waited for its model. */
  isModelDueTooLate: ({ context: { yielding, progress } }: Context) => yielding !== undefined && isModelDue(progress),
  isStepAnswered: ({ context: { progress } }: Context) =>
    progress.openStep !== undefined && isAllAnswered(progress.openStep),
  /** Whether this is the result of the only call of the open step that has not answered. */
  isLastResult: ({ context: { progress } }: Context, answer: ToolAnswer) => {
    if (answer.isUnbegun || answer.isLeft || answer.parks || answer.wait) return false;
    const callId = answeredCallId(progress, answer);
    return callId !== undefined && progress.openStep !== undefined && isLastUnanswered(progress.openStep, callId);
  },
  /** Each call of the open step has answered or waits; none runs or may start. */
  isIdle: ({ context: { progress } }: Context) => progress.openStep !== undefined && isIdle(progress.openStep),
  hasCallsToRun: ({ context: { progress } }: Context) => progress.openStep !== undefined && !isIdle(progress.openStep),
  /** A workflow has something to take: a result, a timer whose time has come, or an event. */
  hasNews: ({ context: { progress } }: Context) => hasNews(progress),
  /** A workflow has calls that must be judged before they start. */
  hasCallsToJudge: ({ context }: Context) =>
    (context.hasPolicy || Object.values(context.tools).some(({ asks }) => asks)) &&
    (context.progress.openStep?.calls ?? []).some((call) => isToJudge(context, call)),
  /** The machine of a workflow is done. */
  isMachineDone: ({ context }: Context) => context.data !== undefined,
  /** No call of a workflow runs or may start, and each event for another run has arrived. */
  isStill: ({ context: { progress } }: Context) =>
    outboxOf(progress).length === 0 && (progress.openStep === undefined || isIdle(progress.openStep)),
  /** The machine of a workflow has ended, and an event of it for another run has not arrived yet. */
  isEndUnsent: ({ context }: Context) =>
    (context.data !== undefined || context.error !== undefined) && outboxOf(context.progress).length > 0,
  isAllSent: ({ context: { progress } }: Context) => outboxOf(progress).length === 0,
  /** The model did not answer, or the next call has a later turn: the run waits until it is asked. */
  isModelAway: ({ context: { progress } }: Context) => modelWaitOf(progress) !== undefined,
  isModelDue: ({ context: { progress } }: Context) => isModelDue(progress),
  isOutage: (_: Context, answer: ModelAnswer) => 'error' in answer && answer.wait !== undefined,
  isOutageOver: (_: Context, answer: ModelAnswer) => 'error' in answer && answer.parks === true,
  /** The setup of this process cannot ask the model, or the budget refuses the call. */
  isGivenBack: (_: Context, answer: ModelAnswer) => 'error' in answer && answer.leaves === true,
  hasCause: ({ context }: Context) => context.cause !== undefined,
  hasEffectUnderWay: ({ context }: Context) => hasEffectUnderWay(context),
  isFreeToLeave: ({ context }: Context) => context.cause !== undefined && !hasEffectUnderWay(context),
  /** The previous process died between the run's answer and its end: the model is not asked again. */
  isAnsweredToCheck: ({ context }: Context) => isAnsweredToCheck(context),
  isToolLoop: ({ context }: Context) => toolLoopOf(context.progress.counters, context.limits) !== undefined,
  isOutOfSteps: ({ context }: Context) => isOutOfSteps(context),
  /** A raised limit is for a whole run: the phases of a pipeline keep their own limits. */
  isOutOfStepsWatched: ({ context }: Context) =>
    context.isWatched && context.phases.length === 0 && isOutOfSteps(context),
  /** A last phase that is out of steps returns its last text: it is the run's answer, and is checked against the schema. */
  isOutOfStepsToCheck: ({ context }: Context) =>
    context.hasOutputSchema && context.phases.length > 0 && isLastPhase(context) && isOutOfSteps(context),
  isLanded: (moment: Moment) => isLanded(moment),
  isLandedWithCalls: (moment: Moment) =>
    isLanded(moment) && !phaseOf(moment.context)?.isBare && hasToolCalls(replyOf(moment.context)),
  isLandedToJudge: (moment: Moment) =>
    isLanded(moment) && !phaseOf(moment.context)?.isBare && mustJudge(moment.context),
  isLandedToCheck: (moment: Moment) =>
    isLanded(moment) && moment.context.hasOutputSchema && isLastPhase(moment.context),
  isReply: (_: Context, answer: ModelAnswer) => 'reply' in answer,
  isFit: (_: Context, check: OutputCheck) => 'data' in check,
  canRepair: ({ context }: Context) => (context.progress.counters.repairs ?? 0) < MAX_REPAIRS && !isOutOfSteps(context),
  isNextPhase: ({ context: { progress } }: Context, { index }: { readonly index: number }) =>
    progress.completedPhases.length === index,
  isPhasePassable: ({ context }: Context) => !context.cause && isPhasePassable(context.error, phaseOf(context)),
  hasAllPhases: ({ context: { phases, progress } }: Context) =>
    phases.length > 0 && progress.completedPhases.length >= phases.length,
  hasOutput: ({ context }: Context) => context.output !== undefined,
  hasOutcome: ({ context }: Context) => context.progress.outcome !== undefined,
  hasEnded: ({ context }: Context) => context.error !== undefined,
  /** The run is not over: its host's machine gets no done event. */
  isOnlyLeft: ({ context }: Context, output: RunOutput | undefined) =>
    context.isHosted === true && output !== undefined && !isOver(output),
  isParked: ({ context: { progress, output } }: Context) => progress.parked !== undefined || isParkedBy(output?.error),
  isComplete: ({ context }: Context) => classifyCheckpointOutcome(context.error, context.cause) === 'complete',
  isLeaveRunning: ({ context }: Context) =>
    isRefusedForNow(context) || classifyCheckpointOutcome(context.error, context.cause) === 'leave-running',
};

/** A start says why it was refused; a host's machine tries the run again. */
function isRefusedForNow({ isHosted, isPassing }: RunContext): boolean {
  return isHosted === true && isPassing === true;
}

function isModelDue(progress: Progress): boolean {
  const wait = modelWaitOf(progress);
  return wait !== undefined && wait.dueAt === undefined;
}

/**
 * A call whose intent is not stored has not begun; a call that is a run is left for another process, like this run. One whose
 * connection broke is no longer under way.
 */
function hasEffectUnderWay({ progress, intents, tools, leftCalls }: RunContext): boolean {
  const unbegun = new Set(intents.flatMap(({ calls }) => calls.map(({ callId }) => callId)));
  const isRun = (name: string) => Object.hasOwn(tools, name) && tools[name]?.isRun === true;
  return (progress.openStep?.calls ?? []).some(
    ({ state, effect, callId, name }) =>
      state === 'started' && effect !== 'read' && !unbegun.has(callId) && !isRun(name) && !leftCalls.includes(callId),
  );
}

/** Whether some call of the reply must be judged before it starts. */
function mustJudge(context: RunContext): boolean {
  const { reply } = context;
  return reply !== undefined && toolCallsOf(reply.message).some(({ toolName }) => mustJudgeTool(context, toolName));
}

function mustJudgeStep(context: RunContext): boolean {
  const calls = context.progress.openStep?.calls ?? [];
  return calls.some(({ state, name }) => state === 'planned' && mustJudgeTool(context, name));
}

function mustJudgeTool({ tools, hasPolicy }: RunContext, name: string): boolean {
  return hasPolicy || (Object.hasOwn(tools, name) && tools[name]?.asks === true);
}

function isAnsweredToCheck(context: RunContext): boolean {
  return context.hasOutputSchema && isLastPhase(context) && hasAnswered(context.progress);
}

/** Whether the conversation ends with an answer of this run: a run continues after an answer in a host's history. */
function hasAnswered({ transcript, iteration, openPhase }: Progress): boolean {
  return (openPhase?.iteration ?? iteration) > 0 && transcript.at(-1)?.role === 'assistant';
}

function isOutOfSteps(context: RunContext): boolean {
  const { progress, limits } = context;
  const phase = phaseOf(context);
  if (phase) return (progress.openPhase?.iteration ?? 0) >= phase.maxSteps;
  return progress.iteration >= limits.maxSteps + progress.raisedSteps;
}

function isLanded({ context, event }: Moment): boolean {
  return persistedWith(context, event) >= context.requested;
}

/** Returns the boundary up to which everything is stored, after this event. */
export function persistedWith({ persisted }: Pick<RunContext, 'persisted'>, event: RunMachineEvent): number {
  return event.type === 'boundary.persisted' ? Math.max(persisted, event.boundary) : persisted;
}

function phaseOf({ progress, phases }: RunContext) {
  return currentPhase(progress, phases);
}

function isLastPhase({ progress, phases }: RunContext): boolean {
  return progress.completedPhases.length + 1 >= phases.length;
}

const noMessage = { role: 'assistant' as const, content: [] };

function replyOf({ reply }: RunContext) {
  return reply?.message ?? noMessage;
}
