import { PawlError } from '../values/error-codes.ts';
import { type ErrorData, isErrorData } from '../values/error-data.ts';
import { hasTexts, isAmount, isCount, isObject, type JsonValue } from '../values/json.ts';
import { isMessages, type Message } from '../values/message.ts';
import type { FieldRedactor } from '../values/redact.ts';
import { isUsage, type Spend, type Usage } from '../values/usage.ts';
import type { RunStatus } from './finalize.ts';
import { isPhaseOutput, type PhaseOutput, redactPhase } from './phase.ts';
import { type FinishReason, isFinishReason } from './reply.ts';
import {
  type ForkedFrom,
  isForkedFrom,
  isLabels,
  isMeta,
  isParentCall,
  type Labels,
  type ParentCall,
  type RunCheckpointMeta,
} from './request.ts';
import type { Wait } from './waits/wait.ts';

/** The fields of every result, with any status. */
export interface EndedFacts {
  /** The id of the run. */
  readonly runId: string;
  /** The answer; for a run that did not succeed, its last text. */
  readonly output: string;
  /** The tokens of all its model calls. */
  readonly usage: Usage;
  /** The cost as a budget counts it; absent without a budget. */
  readonly spend?: Spend;
  /** The steps of the run. */
  readonly iterations: number;
  /** The run is a fork of this one. */
  readonly forkedFrom?: ForkedFrom;
  /** The trace of the run, over all its processes; absent without `tracing`. */
  readonly traceId?: string;
  /** How the answer ended; absent for a run without one, and for one that ended before this was stored. */
  readonly finishReason?: FinishReason;
  /** The outputs of its finished phases. */
  readonly phases: readonly PhaseOutput[];
  /** Steered messages that could not be delivered before the end. */
  readonly undelivered: readonly Message[];
  /** For an answer that is read again from the store: it was too long to be kept whole, and its texts are shortened. */
  readonly isCut?: true;
  /** Only of an answer that a start found: the run ended before that start. */
  readonly kept?: true;
  /** Of a kept answer: when the run ended, wall clock of its process, ms. Absent: an earlier version kept it. */
  readonly endedAt?: number;
  /** Whether the run was recorded: without a store none of the promises hold. */
  readonly durable: boolean;
  /** Saves that the store refused; a later save wrote their content, or it is lost with the end. */
  readonly saveErrors: number;
}

/** A run that succeeded. */
export interface OkOutput<Data = unknown> extends EndedFacts {
  /** The run succeeded. */
  readonly status: 'ok';
  /** The answer as the agent's `output` schema returned it; `undefined` without a schema. */
  readonly data: Data;
  readonly error?: undefined;
}

/**
 * A run that waits, and is suspended in its store. It continues when one of its waits is over, in any process; its end then comes by
 * `onOutcome`, or as the result of another `start` with its id.
 */
export interface WaitingOutput extends EndedFacts {
  /** The run waits. */
  readonly status: 'waiting';
  /** What it waits for: each with its id, kind, question and time. */
  readonly waits: readonly Wait[];
  /** The earliest time at which a wait ends by itself, wall clock, ms; absent = only an answer ends one. */
  readonly wakeAt?: number;
  /** RUN_WAITS. */
  readonly error: ErrorData;
  readonly data?: undefined;
}

/** A run with any other end; its error is the reason. */
export interface FailedOutput extends EndedFacts {
  /** How it ended: see the words below. */
  readonly status: Exclude<RunStatus, 'ok' | 'waiting'>;
  /** Why: `name`, `code`, `message`, `cause`. Branch on the code. */
  readonly error: ErrorData;
  readonly data?: undefined;
}

/** How a run ended, without its transcript: the form that is stored, kept, and passed to a host machine as `output`. */
export type RunOutput<Data = unknown> = OkOutput<Data> | FailedOutput | WaitingOutput;

/**
 * How a run ended. `run.result` resolves to one, and never rejects.
 * @example
 * const result = await executor.run(agent, { prompt });
 * if (result.status === 'ok') show(result.data);
 * else if (result.error.code === 'BUDGET_EXCEEDED') retryLater();
 */
export type RunResult<Data = unknown> = RunOutput<Data> & { readonly messages: readonly Message[] };

/**
 * Returns a result without its messages, as a host machine gets it: they would be copied into its context and into every
 * frame.
 */
export function withoutMessages({ messages: _, ...output }: RunResult): RunOutput {
  return output;
}

/** Returns whether a result is the end of its run: one that was left, or that waits, continues. */
export function isOver({ status }: Pick<RunOutput, 'status'>): boolean {
  return status !== 'interrupted' && status !== 'waiting';
}

/** Whose run a kept outcome belongs to, as its record says it. */
export interface OutcomeOwner {
  /** Of a longer prompt the first 200 characters. */
  readonly meta: RunCheckpointMeta;
  readonly labels?: Labels;
  /** The call that began the run; absent = a host did. */
  readonly parent?: ParentCall;
  /** When it began, wall clock of its process, ms; absent: its record does not say it. */
  readonly beganAt?: number;
  /** How long processes worked on it, ms; absent: an earlier version kept it. */
  readonly elapsedMs?: number;
}

/** The terminal outcome as it is stored and delivered. `outcomeId` is the same at each delivery. */
export type RunOutcome = {
  readonly outcomeId: string;
  /** In a kept outcome: the hash of the request, as in the record. */
  readonly fingerprint?: string;
  /** In a kept outcome of an executor with `retention.records` or `journal`: whose run it is. */
  readonly run?: OutcomeOwner;
  /** In a kept outcome: the run recorded no step and has no answer, so the next start of its request begins it again. */
  readonly isUnbegun?: true;
} & ((Omit<OkOutput, 'data'> & { /** Absent without an `output` schema. */ readonly data?: JsonValue }) | FailedOutput);

/** Returns the result that an outcome was stored of. */
export function withoutId(outcome: RunOutcome): RunOutput {
  const { outcomeId: _, fingerprint: __, run: ___, isUnbegun: ____, endedAt: _____, ...output } = outcome;
  return output as RunOutput;
}

/** Returns the result of a start that finds how its run ended. */
export function keptAnswer(outcome: RunOutcome): RunOutput {
  const { endedAt } = outcome;
  return { ...withoutId(outcome), kept: true, ...(endedAt === undefined ? {} : { endedAt }) };
}

/**
 * The status of a run in a list. `live`: a process works on it. `interrupted`: its process has left it, and it is due. `waiting`: it is suspended until
 * one of its waits is over. `parked`: only a person moves it, by `unpark`. `quarantined`: its record cannot be read, and is kept.
 */
export type ListedStatus = 'live' | 'interrupted' | 'waiting' | 'parked' | 'quarantined';

/** A run did not succeed, and its host asked for an error (`run.orThrow()`). The code is that of the run's error. */
export class RunFailedError extends PawlError {
  declare readonly cause: ErrorData;
  /** Not enumerable: printing the error must not print the conversation. */
  readonly #result: (FailedOutput | WaitingOutput) & Pick<RunResult, 'messages'>;

  constructor(result: (FailedOutput | WaitingOutput) & Pick<RunResult, 'messages'>) {
    const { runId, status, error } = result;
    const what = status === 'waiting' ? 'waits, and has not ended' : `ended with status ${status}`;
    super(error.code, `run ${runId} ${what}: ${error.code}: ${error.message}`, { cause: error });
    this.#result = result;
  }

  /** How the run ended: its status, its last text, its usage. */
  get result(): (FailedOutput | WaitingOutput) & Pick<RunResult, 'messages'> {
    return this.#result;
  }
}

/** Returns the result of a run that succeeded. @throws {RunFailedError} for any other */
export async function okOrThrow<Data>(result: Promise<RunResult<Data>>): Promise<RunResult<Data> & { status: 'ok' }> {
  const ended = await result;
  if (ended.status === 'ok') return ended;
  throw new RunFailedError(ended);
}

/** All statuses of an ended run. A missing status does not compile. */
const statuses: { readonly [Status in RunStatus]: true } = {
  ok: true,
  error: true,
  timeout: true,
  cancelled: true,
  killed: true,
  interrupted: true,
  waiting: true,
};

/** Returns whether a stored value is a RunOutcome. */
export function isOutcome(value: unknown): boolean {
  if (!hasTexts(value, ['runId', 'output', 'outcomeId']) || !Object.hasOwn(statuses, String(value.status)))
    return false;
  const hasLists = Array.isArray(value.phases) && value.phases.every(isPhaseOutput) && isMessages(value.undelivered);
  const isCounted = isUsage(value.usage) && isCount(value.iterations) && typeof value.durable === 'boolean';
  const isExplained = value.status === 'ok' ? value.error === undefined : isErrorData(value.error);
  const isNamed = value.fingerprint === undefined || typeof value.fingerprint === 'string';
  const isEnded = value.finishReason === undefined || isFinishReason(value.finishReason);
  const isOwned = value.run === undefined || isOutcomeOwner(value.run);
  const isTimed = value.endedAt === undefined || isAmount(value.endedAt);
  if (value.forkedFrom !== undefined && !isForkedFrom(value.forkedFrom)) return false;
  if (value.traceId !== undefined && typeof value.traceId !== 'string') return false;
  return hasLists && isCounted && isExplained && isNamed && isEnded && isOwned && isTimed;
}

/** Returns whether a stored value says whose run it is. */
export function isOutcomeOwner(value: unknown): boolean {
  if (!isObject(value) || !isMeta(value.meta)) return false;
  const { labels, parent, beganAt, elapsedMs } = value;
  const isTimed = [beganAt, elapsedMs].every((ms) => ms === undefined || isAmount(ms));
  return isTimed && (labels === undefined || isLabels(labels)) && (parent === undefined || isParentCall(parent));
}

/** Returns whether a value is the status of a run that ended. */
export function isEndStatus(value: unknown): boolean {
  const isStatus = typeof value === 'string' && Object.hasOwn(statuses, value);
  return isStatus && value !== 'interrupted' && value !== 'waiting';
}

/** Returns an outcome without its secrets. */
export function redactOutcome<T extends RunOutput | RunOutcome>(outcome: T, by: FieldRedactor): T {
  return by.once(outcome, () => {
    const { output, error, data, phases, undelivered } = outcome;
    return {
      ...outcome,
      output: by.text(output),
      phases: phases.map((phase) => redactPhase(phase, by)),
      undelivered: undelivered.map((message) => by.message(message)),
      ...(error ? { error: by.error(error) } : {}),
      ...(data === undefined ? {} : { data: by.json(data as JsonValue) }),
    };
  });
}
