import type { ErrorData } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import type { Spend, Usage } from '../values/usage.ts';
import type { RunStatus } from './finalize.ts';
import type { PhaseOutput } from './phase.ts';

/** What every result has, with any status. */
export interface EndedFacts {
  readonly runId: string;
  /** The answer; of a run that did not succeed, the last text it had. */
  readonly output: string;
  readonly usage: Usage;
  /** What a budget counted; absent without one. */
  readonly spend?: Spend;
  readonly iterations: number;
  readonly phases: readonly PhaseOutput[];
  /** Steered messages that could not be delivered before the end. */
  readonly undelivered: readonly Message[];
  /** Of an answer that is given again from the store: it was too long to be kept whole, and texts are shortened. */
  readonly isCut?: true;
  /** Whether the run was recorded: without a store none of the promises hold. */
  readonly durable: boolean;
  /** Saves that the store refused; what they would have written was caught up by a later one, or is lost with the end. */
  readonly saveErrors: number;
}

/** A run that succeeded. */
export interface OkOutput<Data = unknown> extends EndedFacts {
  readonly status: 'ok';
  /** The answer as the agent's `output` schema gave it; `undefined` without a schema. */
  readonly data: Data;
  readonly error?: undefined;
}

/** A run that ended otherwise; its error says why. */
export interface FailedOutput extends EndedFacts {
  readonly status: Exclude<RunStatus, 'ok'>;
  readonly error: ErrorData;
  readonly data?: undefined;
}

/** How a run ended, without its transcript: what is stored, kept, and handed to a host machine as `output`. */
export type RunOutput<Data = unknown> = OkOutput<Data> | FailedOutput;

/**
 * How a run ended. `run.result` gives one, and never rejects.
 * @example
 * const result = await executor.run(agent, { prompt });
 * if (result.status === 'ok') show(result.data);
 * else if (result.error.code === 'BUDGET_EXCEEDED') retryLater();
 */
export type RunResult<Data = unknown> = RunOutput<Data> & { readonly messages: readonly Message[] };

/** A result as a host machine gets it: messages would land in its context and in every frame. */
export function withoutMessages({ messages: _, ...output }: RunResult): RunOutput {
  return output;
}

/** The terminal outcome as it is stored and delivered. `outcomeId` is the same at each delivery. */
export type RunOutcome = {
  readonly outcomeId: string;
  /** Of a kept outcome: tells the request from others, as in the record. */
  readonly fingerprint?: string;
} & ((Omit<OkOutput, 'data'> & { /** Absent without an `output` schema. */ readonly data?: JsonValue }) | FailedOutput);

/** A result, from the outcome that was stored of it. */
export function withoutId({ outcomeId: _, fingerprint: __, ...output }: RunOutcome): RunOutput {
  return output as RunOutput;
}
