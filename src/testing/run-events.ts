import type { OutputCheck, Resolution, RunMachineEvent } from '../../machines/context.ts';
import { causeData } from '../run/finalize.ts';
import type { Limits } from '../run/limits.ts';
import { beginProgress, type Progress } from '../run/progress.ts';
import type { ModelReply } from '../run/reply.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import type { RunOutput } from '../run/result.ts';
import type { Wait } from '../run/waits/wait.ts';
import type { WaitAnswer } from '../run/waits/wait-answer.ts';
import type { Judgement } from '../run/waits/wait-rules.ts';
import { toErrorData } from '../values/error-data.ts';
import { RunWaitsError } from '../values/errors.ts';
import type { JsonValue } from '../values/json.ts';
import { enterMessage, type ToolOutput } from '../values/message.ts';
import { noUsage, type Usage } from '../values/usage.ts';

/** A call that a model makes. */
export interface AskedCall {
  /** Unique in the run. */
  readonly callId: string;
  readonly name: string;
  readonly input?: JsonValue;
}

/** The reply of a model in one turn. */
export interface SaidTurn {
  readonly text?: string;
  readonly calls?: readonly AskedCall[];
  readonly usage?: Usage;
}

/** What `resolving` returns for an accepted run. */
export type AcceptedRun = Omit<Extract<Resolution, { kind: 'accepted' }>, 'kind'>;

const limits: Limits = {
  maxSteps: 4,
  maxRuntimeMs: 60_000,
  maxConsecutiveToolErrors: 3,
  maxSameToolCallRepeats: 3,
  toolConcurrency: 8,
};

/**
 * Returns the progress of a new run: the input of `runMachine(agent)`.
 * @param meta fields of the run that matter to the test
 */
export function freshProgress(meta: Partial<RunCheckpointMeta> = {}): Progress {
  const nobody = { callerId: '', channelId: '', guildId: '', parentRunId: '', prompt: 'Go.', modelTier: 'fast' };
  const whole = { runId: 'run-1', agentId: 'agent', agentName: 'Agent', ...nobody, ...meta };
  return beginProgress(whole, { version: '1', hash: 'test' });
}

/** The event with which an actor of the chart reports its result. */
const done = (id: string, output: unknown) =>
  ({ type: `xstate.done.actor.${id}`, actorId: id, output }) as unknown as RunMachineEvent;
const resolved = (resolution: Resolution) => done('resolve', resolution);

/**
 * The events of a run's machine, the answers of its actors included, to walk `runMachine(agent)` with XState's pure
 * `transition`: no executor, no clock, no model.
 * @example
 * let [run] = initialTransition(runMachine({ id: 'agent' }), { progress: freshProgress() });
 * [run] = transition(machine, run, runEvents.accepted());
 * [run] = transition(machine, run, runEvents.replied({ text: 'Done.' }));
 */
export const runEvents = {
  /** The run is accepted. Default: a new run, 4 steps, a tool `look` that only reads, not durable. */
  accepted: (found: Partial<AcceptedRun> = {}): RunMachineEvent => {
    const flags = { hasOutputSchema: false, isWatched: false, hasPolicy: false, isInspected: false, isDurable: false };
    const tools = { look: { effect: 'read' } } as const;
    const nothingYet = { progress: freshProgress(), limits, tools, phases: [], maxRecordBytes: 64 * 2 ** 20 };
    return resolved({ kind: 'accepted', ...nothingYet, ...flags, ...found });
  },
  /** The run is refused: by a budget, for an unknown tier, or for an unreadable record. */
  refused: (error: unknown, progress: Progress = freshProgress()): RunMachineEvent =>
    resolved({ kind: 'refused', error: toErrorData(error), progress, isDurable: false }),
  /** The run has already ended: its kept result is returned. */
  answered: (output: RunOutput): RunMachineEvent => resolved({ kind: 'answered', output }),
  /** The model replies with a text, or calls tools. */
  replied: (turn: SaidTurn): RunMachineEvent => done('model', { reply: replyOf(turn) }),
  /** The model call failed after all retries. */
  modelFailed: (error: unknown): RunMachineEvent => done('model', { error: toErrorData(error) }),
  /**
   * A tool answers, with a text or an output. The machine throws a TypeError if no open call has the id.
   * @param place its index among the parallel calls, from 0 @param callId the id that the model's turn had, in every phase
   */
  toolAnswered: (place: number, callId: string, result: string | ToolOutput): RunMachineEvent =>
    done(`tool.${place}`, {
      ...{ callId, isOfTurn: true },
      result: typeof result === 'string' ? { type: 'text', value: result } : result,
    }),
  /** The calls of a reply were judged, before any of them starts. */
  judged: (judgements: readonly Judgement[]): RunMachineEvent => done('judge-calls', judgements),
  /** A running call needs something from outside, and waits for it. @param place as for `toolAnswered` */
  toolWaits: (place: number, wait: Wait): RunMachineEvent =>
    done(`tool.${place}`, { callId: wait.callId ?? '', result: { type: 'text', value: '' }, wait }),
  /** The model is away, and the run waits for it. */
  modelAway: (error: unknown, wait: Wait): RunMachineEvent => done('model', { error: toErrorData(error), wait }),
  /** An answer to a wait, or its expiry. */
  waitAnswered: (answer: WaitAnswer, receipt = answer.waitId): RunMachineEvent => ({
    type: 'wait.answer',
    answer,
    receipt,
  }),
  /** The store has taken the run, which rests. */
  rested: (): RunMachineEvent => done('rest', { cause: toErrorData(new RunWaitsError('the run waits')) }),
  /** The answer was checked against the output schema. */
  checked: (check: OutputCheck): RunMachineEvent => done('check-output', check),
  /** Everything up to this boundary is stored. A durable run numbers its boundaries from 1: one for each step that only reads. */
  landed: (boundary: number): RunMachineEvent => ({ type: 'boundary.persisted', boundary }),
  /** The host cancels the run. */
  cancelled: (reason?: string): RunMachineEvent => ({
    type: 'run.cancel',
    ...(reason === undefined ? {} : { reason }),
  }),
  /** The run is stopped from outside: a shutdown, a deadline, a kill, a lost lease. Accepts any thrown value. */
  stopped: (cause: unknown): RunMachineEvent => ({ type: 'run.stop', cause: causeData(cause) }),
  /** The run must stop when no call with effects is running any more. */
  left: (cause: unknown): RunMachineEvent => ({ type: 'run.leave', cause: causeData(cause) }),
  /** The run gets a message. */
  steered: (text: string, receipt = text): RunMachineEvent => ({
    type: 'run.steer',
    message: enterMessage({ role: 'user', content: [{ type: 'text', text }] }),
    receipt,
  }),
  /** The end is recorded and delivered: then the run is over. */
  settled: (output: RunOutput): RunMachineEvent => done('settle', output),
};

function replyOf({ text, calls = [], usage = noUsage }: SaidTurn): ModelReply {
  const content = [
    ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ callId, name, input = {} }) => ({
      type: 'tool-call' as const,
      toolCallId: callId,
      toolName: name,
      input,
    })),
  ];
  return { message: { role: 'assistant', content }, finishReason: calls.length > 0 ? 'tool-calls' : 'stop', usage };
}
