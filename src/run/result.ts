import type { ErrorData } from './error-data.ts';
import type { RunStatus } from './finalize.ts';
import type { JsonValue } from './json.ts';
import type { Message } from './message.ts';
import type { PhaseOutput } from './phase.ts';
import type { Spend, Usage } from './usage.ts';

/** How a run ended, without its transcript: what is stored, kept, and handed to a host machine as `output`. */
export interface RunOutput {
  readonly runId: string;
  readonly status: RunStatus;
  /** The answer; of a run that did not succeed, the last text it had. */
  readonly output: string;
  /** The answer as the agent's `output` schema gave it; absent without one. */
  readonly data?: JsonValue;
  readonly error?: ErrorData;
  readonly usage: Usage;
  /** What a budget counted; absent without one. */
  readonly spend?: Spend;
  readonly iterations: number;
  readonly phases: readonly PhaseOutput[];
  /** Steered messages that could not be delivered before the end. */
  readonly undelivered: readonly Message[];
  /** Whether the run was recorded: without a store none of the promises hold. */
  readonly durable: boolean;
  /** Saves that the store refused; what they would have written was caught up by a later one, or is lost with the end. */
  readonly saveErrors: number;
}

/** How a run ended. `run.result` gives one, and never rejects. */
export interface RunResult extends RunOutput {
  readonly messages: readonly Message[];
}

/** A result as a host machine gets it: messages would land in its context and in every frame. */
export function withoutMessages({ messages: _, ...output }: RunResult): RunOutput {
  return output;
}

/** The terminal outcome as it is stored and delivered. `outcomeId` is the same at each delivery. */
export interface RunOutcome extends RunOutput {
  readonly outcomeId: string;
}
