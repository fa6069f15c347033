import type { ErrorData } from './error-data.ts';
import type { JsonObject } from './json.ts';
import { countStep, type GuardCounters, noCounters } from './limits.ts';
import { enterMessage, type Message, type ToolCallPart, type ToolOutput, textOf, toolCallsOf } from './message.ts';
import {
  isAllAnswered,
  type OpenCall,
  type OpenStep,
  recordResult as recordInStep,
  resultsMessage,
  startCalls as startInStep,
  type ToolEffect,
  withdrawCalls as withdrawInStep,
} from './open-step.ts';
import type { PhaseOutput } from './phase.ts';
import type { ModelReply } from './reply.ts';
import type { ImagePart, RunCheckpointMeta } from './request.ts';
import type { RunOutcome } from './result.ts';
import { Transcript } from './transcript.ts';
import { addUsage, noUsage, type Usage } from './usage.ts';

/** Which definition of its agent a run was begun with. */
export interface Definition {
  readonly version: string;
  readonly hash: string;
}

/** Why a record was set aside. */
export interface Parked {
  readonly code: string;
  readonly reason: string;
}

/**
 * Everything a run has done so far, as an immutable value: what the machine carries and what a record is made of.
 * The functions below are the only way it changes.
 */
export interface Progress {
  readonly meta: RunCheckpointMeta;
  readonly inputs: JsonObject;
  readonly images: readonly ImagePart[];
  readonly transcript: Transcript;
  /** Completed model turns over the whole life of the run. */
  readonly iteration: number;
  readonly completedPhases: readonly PhaseOutput[];
  readonly usage: Usage;
  readonly counters: GuardCounters;
  readonly openStep?: OpenStep;
  /** Starts in a row that recorded nothing new. */
  readonly attempts: number;
  /** Working time before this process, ms. */
  readonly elapsedMs: number;
  readonly definition: Definition;
  readonly undelivered: readonly Message[];
  readonly outcome?: RunOutcome;
  readonly parked?: Parked;
}

/** The progress of a run that has done nothing: its opening turn is the prompt and the images. */
export function beginProgress(
  meta: RunCheckpointMeta,
  definition: Definition,
  extra: { inputs?: JsonObject; images?: readonly ImagePart[] } = {},
): Progress {
  const images = extra.images ?? [];
  const opening = enterMessage({ role: 'user', content: [{ type: 'text', text: meta.prompt }, ...images] });
  return {
    meta,
    definition,
    inputs: extra.inputs ?? {},
    images,
    transcript: Transcript.of([opening]),
    iteration: 0,
    completedPhases: [],
    usage: noUsage,
    counters: noCounters,
    attempts: 1,
    elapsedMs: 0,
    undelivered: [],
  };
}

/** What a run must know of its tools to keep its ledger: plain data, by tool name. */
export type ToolFacts = {
  readonly [name: string]: {
    readonly effect: ToolEffect;
    /** Calls of this tool that run side by side; absent = as many as the agent allows. */
    readonly concurrency?: number;
  };
};

/** A reply that asks for tools opens a step; it enters the transcript only together with its results. */
export function openStep(progress: Progress, reply: ModelReply, tools: ToolFacts): Progress {
  const message = enterMessage(withUniqueCallIds(progress, reply.message)) as OpenStep['message'];
  const calls = toolCallsOf(message).map((call) => plannedCall(call, tools));
  return { ...progress, usage: addUsage(progress.usage, reply.usage), openStep: { message, calls } };
}

function plannedCall(call: ToolCallPart, tools: ToolFacts): OpenCall {
  const effect = Object.hasOwn(tools, call.toolName) ? (tools[call.toolName]?.effect ?? 'read') : 'read';
  const input = (call.input ?? null) as OpenCall['input'];
  return { callId: call.toolCallId, name: call.toolName, input, effect, state: 'planned', attempt: 0 };
}

/**
 * Some models count their calls anew in each turn (`call_0`, `call_0`, …). Ids name ledger lines and make the
 * idempotency keys, so that one that was used before gets the step and position appended.
 */
function withUniqueCallIds(progress: Progress, message: ModelReply['message']): ModelReply['message'] {
  const seen = new Set<string>();
  const isFreeId = (id: string) => id !== '' && !seen.has(id) && !progress.transcript.hasCallId(id);
  let hasChanged = false;
  let position = 0;
  const content = message.content.map((part) => {
    if (part.type !== 'tool-call' || part.providerExecuted === true) return part;
    let toolCallId = part.toolCallId;
    while (!isFreeId(toolCallId)) toolCallId = `${toolCallId}-${progress.iteration + 1}-${position}`;
    position += 1;
    seen.add(toolCallId);
    if (toolCallId === part.toolCallId) return part;
    hasChanged = true;
    return { ...part, toolCallId };
  });
  return hasChanged ? { ...message, content } : message;
}

export function startCalls(progress: Progress, callIds: ReadonlySet<string>): Progress {
  return progress.openStep ? { ...progress, openStep: startInStep(progress.openStep, callIds) } : progress;
}

/** Takes back calls that never began, so that a later start runs them instead of calling their outcome unknown. */
export function withdrawCalls(progress: Progress, calls: readonly OpenCall[]): Progress {
  if (!progress.openStep || calls.length === 0) return progress;
  return { ...progress, openStep: withdrawInStep(progress.openStep, new Set(calls.map((call) => call.callId))) };
}

export function recordResult(progress: Progress, callId: string, result: ToolOutput): Progress {
  return progress.openStep ? { ...progress, openStep: recordInStep(progress.openStep, callId, result) } : progress;
}

/** Moves a step whose calls have all answered into the transcript: exactly two messages, and the ledger is gone. */
export function closeStep(progress: Progress): Progress {
  const { openStep: step, ...rest } = progress;
  if (!step || !isAllAnswered(step)) return progress;
  return {
    ...rest,
    transcript: progress.transcript.append(step.message, enterMessage(resultsMessage(step))),
    iteration: progress.iteration + 1,
    counters: countStep(progress.counters, step),
    attempts: 0,
  };
}

/** Takes the messages that wait into the transcript, in order. */
export function deliver(progress: Progress): Progress {
  return { ...progress, transcript: progress.transcript.append(...progress.undelivered), undelivered: [] };
}

/** A reply without tool calls is the answer: the last step. */
export function recordAnswer(progress: Progress, reply: ModelReply): Progress {
  return {
    ...progress,
    transcript: progress.transcript.append(enterMessage(reply.message)),
    iteration: progress.iteration + 1,
    usage: addUsage(progress.usage, reply.usage),
    attempts: 0,
  };
}

/** The last text the model wrote: the answer, or what there is of one. */
function lastTextOf(progress: Progress): string {
  const open = progress.openStep ? textOf(progress.openStep.message) : '';
  if (open !== '') return open;
  for (let i = progress.transcript.length - 1; i >= 0; i--) {
    const message = progress.transcript.at(i);
    if (message?.role !== 'assistant') continue;
    const text = textOf(message);
    if (text !== '') return text;
  }
  return '';
}

/** How the run ends, from what it has done. */
export function outcomeOf(
  progress: Progress,
  end: { status: RunOutcome['status']; error?: ErrorData; durable: boolean; saveErrors: number; outcomeId: string },
): RunOutcome {
  return {
    runId: progress.meta.runId,
    status: end.status,
    output: lastTextOf(progress),
    ...(end.error && end.status !== 'ok' ? { error: end.error } : {}),
    usage: progress.usage,
    iterations: progress.iteration,
    phases: progress.completedPhases,
    undelivered: progress.undelivered,
    durable: end.durable,
    saveErrors: end.saveErrors,
    outcomeId: end.outcomeId,
  };
}
