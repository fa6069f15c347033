import { callsToStart, type OpenCall } from '../src/run/open-step.ts';
import { keepPhase } from '../src/run/pipeline.ts';
import { type Progress, startCalls, withdrawCalls } from '../src/run/progress.ts';
import { toolCallId, withPlaces } from './call-ids.ts';
import type { RunContext, RunEmitted } from './context.ts';

/** XState's `enqueue`, as the functions behind the parts of `setup.ts` use it. */
export interface Enqueue {
  readonly assign: (change: Partial<RunContext> | ((args: { readonly spawn: Spawn }) => Partial<RunContext>)) => void;
  readonly emit: (event: RunEmitted) => void;
  readonly stopChild: (id: string) => void;
}

type Spawn = (src: 'call-tool', options: ReturnType<typeof callToolOf>) => unknown;

/**
 * Starts the tool calls that may start now: `read` calls at once, those with effects when their intent is stored. A run
 * that has failed or must stop, or whose slice is over, starts nothing: it would have to wait for that call as well, or abort it.
 * @returns the boundary that stores the progress, if there is one
 */
export function startTools(
  context: RunContext,
  progress: Progress,
  { enqueue, also, save }: Starting,
): number | undefined {
  const { limits, tools, cause, yielding, error } = context;
  const step = cause || yielding || error ? undefined : progress.openStep;
  const ofTool = (name: string) => (Object.hasOwn(tools, name) && tools[name]?.concurrency) || limits.toolConcurrency;
  const free = step ? callsToStart(step, { all: limits.toolConcurrency, ofTool }) : [];
  const calls = progress.workflow ? free.filter((call) => !isToJudge(context, call)) : free;
  if (calls.length === 0) return keepUnstarted(context, progress, { enqueue, also, save });
  const places = withPlaces(context.places, calls);
  const seated = { isInspected: context.isInspected, places };
  const now = calls.map((call) => ({ ...call, state: 'started' as const, attempt: call.attempt + 1 }));
  // The transition of a workflow and its calls are one save.
  const isAll = progress.workflow !== undefined;
  const isIntent = (call: OpenCall) => context.isDurable && (isAll || call.effect !== 'read' || isApproved(call));
  const intended = now.filter(isIntent);
  const begun = startCalls(progress, new Set(calls.map((call) => call.callId)));
  const started = now.some((call) => call.effect !== 'read') ? keepPhase(begun) : begun;
  const boundary = context.requested + 1;
  const kind = intended.length > 0 ? 'intent' : context.isDurable ? save : undefined;
  enqueue.assign(({ spawn }) => {
    for (const call of now) if (!isIntent(call)) spawn('call-tool', callToolOf(call, started, seated));
    if (intended.length === 0) return { ...also, progress: started, places, ...(kind ? { requested: boundary } : {}) };
    const intents = [...context.intents, { boundary, calls: intended }];
    return { ...also, progress: started, places, requested: boundary, intents };
  });
  if (!kind) return undefined;
  enqueue.emit({ type: 'boundary', boundary, kind, force: true, progress: started });
  return boundary;
}

/** Whether a call of a workflow has to be judged before its first start: by its tool, or by the executor. */
export function isToJudge(
  { tools, hasPolicy, judgedCalls }: RunContext,
  { callId, name, state, attempt, allowed, answers = [] }: OpenCall,
): boolean {
  const { asks, isWait } = (Object.hasOwn(tools, name) && tools[name]) || {};
  const mustBe = asks || (hasPolicy && !isWait);
  const isNew = state === 'planned' && attempt === 0 && allowed === undefined && answers.length === 0;
  return Boolean(mustBe) && isNew && !judgedCalls?.includes(callId);
}

/** The approval and the start of a call are one save, also for a call without effects. */
function isApproved({ allowed }: OpenCall): boolean {
  return allowed !== undefined && allowed.by !== 'policy';
}

interface Starting {
  readonly enqueue: Enqueue;
  /** Other changes of the context. */
  readonly also?: Partial<RunContext> | undefined;
  /** The progress must be stored even if no call starts, and why. */
  readonly save?: 'wait' | 'answer' | undefined;
}

function keepUnstarted(
  { isDurable, requested }: RunContext,
  progress: Progress,
  { enqueue, also, save }: Starting,
): number | undefined {
  if (!save || !isDurable) {
    if (also) enqueue.assign(() => ({ ...also, progress }));
    return undefined;
  }
  const boundary = requested + 1;
  enqueue.assign(() => ({ ...also, progress, requested: boundary }));
  enqueue.emit({ type: 'boundary', boundary, kind: save, force: true, progress });
  return boundary;
}

/** Announces the results of calls that were refused, which have a result although none has started. */
export function announceRefused(
  { openStep, iteration }: Progress,
  enqueue: Enqueue,
  isOne: (call: OpenCall) => boolean = () => true,
): void {
  for (const call of openStep?.calls ?? []) {
    if (call.state === 'done' && isOne(call)) enqueue.emit({ type: 'call.refused', step: iteration + 1, call });
  }
}

/**
 * Withdraws the calls whose intent is being stored, and requests a save of that: a process that dies now has not begun them.
 */
export function withdrawIntents({ progress, intents, requested }: RunContext, enqueue: Enqueue): void {
  if (intents.length === 0) return;
  const calls = intents.flatMap((intent) => intent.calls);
  const boundary = requested + 1;
  const left = withdrawCalls(progress, calls);
  enqueue.assign({ progress: left, intents: [], requested: boundary });
  enqueue.emit({ type: 'boundary', boundary, kind: 'intent', force: true, progress: left });
}

/** Returns an actor that runs a call, and its input. */
export function callToolOf(call: OpenCall, progress: Progress, context: Pick<RunContext, 'isInspected' | 'places'>) {
  const { iteration, transcript, meta, inputs, openPhase } = progress;
  const input: ToolCallInput = { call, iteration, transcript, meta, inputs, ...phaseOf(openPhase) };
  return { id: toolCallId(context, progress, call.callId), input };
}

/** A call of a tool, and the parts of its run that it may read. */
export interface ToolCallInput extends Pick<Progress, 'iteration' | 'transcript' | 'meta' | 'inputs'> {
  readonly call: OpenCall;
  /** In a pipeline: the phase that calls. */
  readonly phase?: number;
}

/** Returns the number of the open phase as a field of events; none without phases. */
export function phaseOf(openPhase: Progress['openPhase']): { readonly phase?: number } {
  return openPhase ? { phase: openPhase.index } : {};
}
