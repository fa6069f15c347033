import { Hidden } from '../values/hidden.ts';
import type { JsonObject } from '../values/json.ts';
import {
  type AssistantMessage,
  enterMade,
  enterMessage,
  hasToolCalls,
  type Message,
  type ToolCallPart,
  type ToolOutput,
  toolCallsOf,
} from '../values/message.ts';
import { type RunUse, withModel } from '../values/model-use.ts';
import { addSpend, addUsage, noSpend, noUsage, type Spend, type Usage } from '../values/usage.ts';
import { change } from './change.ts';
import { emptyHead, type Identity, identityOf } from './field-rows.ts';
import type { HeadFields, IdentityFields, RunDefinition } from './fields.ts';
import { countStep } from './limits.ts';
import {
  isAllAnswered,
  type OpenCall,
  type OpenStep,
  recordCallResult as recordInStep,
  resultsMessage,
  markStarted as startInStep,
  stepOf,
  type ToolEffect,
  markUnbegun as withdrawInStep,
} from './open-step.ts';
import { type FinishReason, finishReasonOf, type LostUse, type ModelReply } from './reply.ts';
import type { ImagePart, RunCheckpointMeta, RunRequest } from './request.ts';
import { Transcript } from './transcript.ts';

/**
 * The whole progress of a run, as an immutable value: the machine carries it, and records are made of it. Only the functions
 * below change it.
 */
export interface Progress extends IdentityFields, HeadFields {
  /** The host's values for the tools of this run. An inspector sees neither these nor the images. */
  readonly inputs: Hidden<JsonObject>;
  readonly images: Hidden<readonly ImagePart[]>;
  /** The earlier conversation that comes before the prompt (`invocation.history`). */
  readonly earlier: Hidden<readonly Message[]>;
  /** Its own messages, those of all phases, once a turn of a thread has ended: its transcript is then what the thread shows. */
  readonly phaseMessages?: Hidden<readonly Message[]>;
  /** The conversation that the model reads; in a pipeline that of the phase in progress. */
  readonly transcript: Transcript;
  /** The messages of all phases in their order, as the record holds them; absent while `transcript` is all of them. */
  readonly whole?: Transcript;
}

/** Most steered messages that may wait for the next turn. */
export const MAX_UNDELIVERED = 1_000;

/** No earlier messages, hidden from code that prints a context. */
export const noMessages: Hidden<readonly Message[]> = new Hidden([]);

/** Makes the progress of a new run: its opening turn is the prompt and the images. */
export function beginProgress(
  meta: RunCheckpointMeta,
  definition: RunDefinition,
  extra: Partial<Pick<RunRequest, 'inputs' | 'images' | 'earlier'>> & Identity = {},
): Progress {
  const images = new Hidden(extra.images ?? []);
  const earlier = extra.earlier ? new Hidden(extra.earlier) : noMessages;
  return {
    ...emptyHead,
    meta,
    definition,
    inputs: new Hidden(extra.inputs ?? {}),
    images,
    earlier,
    transcript: openingOf({ meta, images, earlier }),
    attempts: 1,
    ...identityOf(extra),
  };
}

/** Returns the progress of a run without a conversation: a workflow has neither prompt nor messages. */
export function withoutConversation(progress: Progress): Progress {
  return { ...progress, transcript: Transcript.of([]) };
}

/** Makes the opening of a conversation: the earlier one, and a turn of the prompt and the images. */
export function openingOf({ meta, images, earlier }: Pick<Progress, 'meta' | 'images' | 'earlier'>): Transcript {
  const turn = enterMessage({ role: 'user', content: [{ type: 'text', text: meta.prompt }, ...images.value] });
  return Transcript.of([...earlier.value, turn]);
}

/**
 * Returns how many messages at the beginning of the transcript belong to earlier turns of the run's thread. Its record does not
 * hold them.
 */
export function ownFrom({ thread, earlier }: Pick<Progress, 'thread' | 'earlier'>): number {
  return thread ? earlier.value.length : 0;
}

/** Returns the messages that the record of a run holds: those of all phases, and of the earlier turns of its thread. */
export function allMessagesOf({ whole, transcript }: Pick<Progress, 'whole' | 'transcript'>): Transcript {
  return whole ?? transcript;
}

/** Returns a conversation with messages added; they are also the last ones of all phases. */
export function withMessages(
  { whole, transcript }: Pick<Progress, 'whole' | 'transcript'>,
  messages: readonly Message[],
): Pick<Progress, 'whole' | 'transcript'> {
  const added = { transcript: transcript.append(...messages) };
  return whole ? { ...added, whole: whole.append(...messages) } : added;
}

/** Returns whether a conversation is longer than its opening. */
export function isBeyondOpening({
  transcript,
  openStep,
  earlier,
}: Pick<Progress, 'transcript' | 'openStep' | 'earlier'>): boolean {
  return openStep !== undefined || transcript.length > earlier.value.length + 1;
}

/** The facts of tools that a run's ledger needs: plain data, by tool name. */
export type ToolFacts = {
  readonly [name: string]: {
    readonly effect: ToolEffect;
    /** Calls of this tool that run at the same time; absent = as many as the agent allows. */
    readonly concurrency?: number;
    /** Each of its calls is a run. */
    readonly isRun?: boolean;
    /** It only waits for something from outside: no rule judges it. */
    readonly isWait?: boolean;
    /** Its calls are judged before they start: a person may have to approve them. */
    readonly asks?: boolean;
  };
};

/**
 * Returns the progress after a reply with tool calls, which opens a step; it enters the transcript only together with its
 * results.
 */
export function openStep(progress: Progress, reply: ModelReply, tools: ToolFacts): Progress {
  const message = enterMessage(withUniqueCallIds(progress, reply.message)) as OpenStep['message'];
  const refused = new Map(reply.refused?.map(({ position, why }) => [position, why]));
  const calls = toolCallsOf(message).map((call, i) => refusedCall(plannedCall(call, tools), refused.get(i)));
  return { ...withoutFinish(progress), ...spent(progress, reply), openStep: stepOf(message, calls) };
}

/** Most steps come before any answer: for them nothing is copied. */
function withoutFinish(progress: Progress): Progress {
  if (progress.finishReason === undefined) return progress;
  const { finishReason: _, ...rest } = progress;
  return rest;
}

/** Returns the progress after a model call that failed. A turn that failed still costs tokens. */
export function recordSpent(progress: Progress, cost: Cost): Progress {
  const { finishReason } = cost;
  if (!cost.usage && !cost.spend && !finishReason) return progress;
  return { ...progress, ...spent(progress, cost), ...(finishReason ? { finishReason } : {}) };
}

type Cost = {
  readonly finishReason?: FinishReason;
  readonly usage?: Usage;
  readonly spend?: Spend;
  readonly model?: string;
  readonly lost?: readonly LostUse[];
};

function spent(
  progress: Progress,
  { usage = noUsage, spend, model, lost }: Omit<Cost, 'finishReason'>,
): Pick<Progress, 'usage' | 'spend' | 'models'> {
  const before = lost ? lost.reduce(afterLoss, progress) : progress;
  const models = model === undefined ? before.models : withModel(before, model);
  return {
    ...(models === undefined ? {} : { models }),
    usage: addUsage(progress.usage, usage),
    ...(spend ? { spend: addSpend(progress.spend ?? noSpend, spend) } : {}),
  };
}

/** A run after what a model cost that failed: it counts for that model alone. */
function afterLoss<Run extends RunUse>(run: Run, { model, usage, spend }: LostUse): Run {
  return {
    ...run,
    models: withModel(run, model),
    usage: addUsage(run.usage, usage),
    ...(spend ? { spend: addSpend(run.spend ?? noSpend, spend) } : {}),
  };
}

/** A call of a tool that is not there has no effect: it is answered with an error. */
function effectOf(tools: ToolFacts, name: string): ToolEffect {
  return Object.hasOwn(tools, name) ? (tools[name]?.effect ?? 'read') : 'read';
}

/** Returns the effects of the calls of an answer as its mark has them; undefined if all of them only read. */
export function effectsIn(message: AssistantMessage, tools: ToolFacts): string | undefined {
  let effects = '';
  for (const { toolName } of toolCallsOf(message)) effects += effectOf(tools, toolName)[0];
  return effects === 'r'.repeat(effects.length) ? undefined : effects;
}

function plannedCall(call: ToolCallPart, tools: ToolFacts): OpenCall {
  const effect = effectOf(tools, call.toolName);
  const input = (call.input ?? null) as OpenCall['input'];
  return { callId: call.toolCallId, name: call.toolName, input, effect, state: 'planned', attempt: 0 };
}

/** A call that must not run has its result before any call starts. */
function refusedCall(call: OpenCall, why: string | undefined): OpenCall {
  return why === undefined ? call : { ...call, state: 'done', result: { type: 'error-text', value: why } };
}

/**
 * Some models restart the numbers of their calls in each turn (`call_0`, `call_0`, …). Ids name ledger lines and make the
 * idempotency keys, so a repeated id gets the step and position appended. The ids of earlier phases are not known any more: in
 * a later phase each id gets the phase appended.
 */
function withUniqueCallIds(progress: Progress, message: ModelReply['message']): ModelReply['message'] {
  const seen = new Set<string>();
  const phase = progress.openPhase?.index ?? 0;
  const isFreeId = (id: string) => id !== '' && !seen.has(id) && !progress.transcript.hasCallId(id);
  let hasChanged = false;
  let position = 0;
  const content = message.content.map((part) => {
    if (part.type !== 'tool-call' || part.providerExecuted === true) return part;
    let toolCallId = phase === 0 ? part.toolCallId : `${part.toolCallId}-p${phase + 1}`;
    while (!isFreeId(toolCallId)) toolCallId = `${toolCallId}-${progress.iteration + 1}-${position}`;
    position += 1;
    seen.add(toolCallId);
    if (toolCallId === part.toolCallId) return part;
    hasChanged = true;
    return { ...part, toolCallId };
  });
  return hasChanged ? { ...message, content } : message;
}

/** What `withUniqueCallIds` appends: a phase, then steps and positions. */
const appended = /^(-p\d+)?(-\d+-\d+)*$/;

/** Returns whether the id of a call was made of one in a model's turn, which was not unique in its run. */
export function isMadeOf(callId: string, turnId: string): boolean {
  return callId.startsWith(turnId) && appended.test(callId.slice(turnId.length));
}

/** Returns the progress after these calls of its open step have started. */
export function startCalls(progress: Progress, callIds: ReadonlySet<string>): Progress {
  return progress.openStep ? { ...progress, openStep: startInStep(progress.openStep, callIds) } : progress;
}

/**
 * Returns the progress without calls of its open step that never began, so that a later start runs them instead of
 * reporting an unknown outcome.
 */
export function withdrawCalls(progress: Progress, calls: readonly OpenCall[]): Progress {
  if (!progress.openStep || calls.length === 0) return progress;
  return { ...progress, openStep: withdrawInStep(progress.openStep, new Set(calls.map((call) => call.callId))) };
}

/** Returns the progress with the result of a call in its open step. */
export function recordResult(progress: Progress, callId: string, result: ToolOutput): Progress {
  if (!progress.openStep) return progress;
  // A result is new progress: a step of many long calls may outlive more deploys than a run has attempts.
  return { ...progress, openStep: recordInStep(progress.openStep, callId, result), attempts: 0 };
}

/**
 * Returns the progress after its step, whose calls have all answered, was moved into the transcript: exactly two messages,
 * and no ledger.
 */
export function closeStep(progress: Progress): Progress {
  const { openStep: step, ...rest } = progress;
  if (!step || !isAllAnswered(step)) return progress;
  return {
    ...rest,
    ...withMessages(progress, [step.message, enterMade(resultsMessage(step))]),
    ...countedTurn(rest),
    counters: countStep(progress.counters, step, progress.effects === 'refuse'),
    attempts: 0,
  };
}

/** Returns the progress after its waiting messages were moved into the transcript, in order. */
export function deliver(progress: Progress): Progress {
  const delivered = withMessages(progress, [...progress.undelivered, ...progress.nudges]);
  return change(progress, (draft) => {
    Object.assign(draft, delivered);
    draft.undelivered = [];
    draft.nudges = [];
    // A phase that has taken a message must not begin again without it: from now on its steps are recorded.
    delete draft.openPhase?.start;
  });
}

/** Returns the progress after a reply without tool calls, which is the answer: the last step. */
export function recordAnswer(progress: Progress, reply: ModelReply): Progress {
  return {
    ...progress,
    ...withMessages(progress, [enterMessage(withoutCalls(reply.message))]),
    ...countedTurn(progress),
    ...spent(progress, reply),
    finishReason: finishReasonOf(reply.finishReason),
    attempts: 0,
  };
}

/** Calls of tools that a model does not have (in a bare phase) are not run: the answer is the rest. */
function withoutCalls(message: ModelReply['message']): ModelReply['message'] {
  if (!hasToolCalls(message)) return message;
  const isKept = (part: (typeof message.content)[number]) =>
    part.type !== 'tool-call' || part.providerExecuted === true;
  return { ...message, content: message.content.filter(isKept) };
}

function countedTurn({ iteration, openPhase }: Progress): Pick<Progress, 'iteration' | 'openPhase'> {
  if (!openPhase) return { iteration: iteration + 1 };
  return { iteration: iteration + 1, openPhase: { ...openPhase, iteration: openPhase.iteration + 1 } };
}
