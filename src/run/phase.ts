import { hasTexts, isCount, isObject, type JsonValue } from '../values/json.ts';
import type { FieldRedactor } from '../values/redact.ts';
import type { Spend, Usage } from '../values/usage.ts';
import type { GuardCounters } from './limits.ts';
import type { FinishReason } from './reply.ts';
import type { Transcript } from './transcript.ts';

/** The output of a finished phase of a multi-phase agent. */
export interface PhaseOutput {
  readonly name: string;
  readonly output: string;
  readonly index?: number;
  /** Hash of the phase's definition: a resume compares it. */
  readonly hash?: string;
  /** For the last phase of an agent with an output schema: the answer as the schema returned it. */
  readonly data?: JsonValue;
  /** How its answer ended; absent for one that has none, or that failed. */
  readonly finishReason?: FinishReason;
  /**
   * The index of its first message in the record's `messages`; the next phase begins where it ends. Absent: its messages are not
   * kept, because a version before 3 recorded it, or a host gave it.
   */
  readonly from?: number;
}

/** The facts of a phase that a run needs: plain data. The phase's model, tools and prompt stay with the executor. */
export interface PhaseFacts {
  readonly name: string;
  readonly hash: string;
  /** Model turns that this phase may take. */
  readonly maxSteps: number;
  /** One plain model call: tool calls in its reply are not run. */
  readonly isBare: boolean;
  /** `fallback` replaces the output of a failed phase, and the pipeline continues. */
  readonly isOptional: boolean;
  readonly fallback: string;
  /** Where another process continues: at the phase's last step, or at its beginning. */
  readonly recovery: 'step' | 'boundary';
}

/** A run at the beginning of a phase: what its record says until a part of the phase is recorded. */
export interface PhaseStart {
  readonly messages: Transcript;
  readonly iteration: number;
  readonly usage: Usage;
  readonly counters: GuardCounters;
  readonly spend?: Spend;
  readonly finishReason?: FinishReason;
}

/** The phase in progress. Its conversation is the run's opening and its own messages. */
export interface OpenPhase {
  readonly index: number;
  /** Only of an imported run: where it is read its agent may not be known. */
  readonly name?: string;
  readonly hash: string;
  /** Completed model turns of this phase. */
  readonly iteration: number;
  /** The index of its first message in the record's `messages`; absent: 0, in a record of version 2. */
  readonly from?: number;
  /**
   * The run's state when the phase began. Present while no part of the phase may be recorded: a phase that begins again after
   * a crash must leave no trace of its first try.
   */
  readonly start?: PhaseStart;
}

/** Returns whether a stored value is a PhaseOutput. */
export function isPhaseOutput(value: unknown): boolean {
  return hasTexts(value, ['name', 'output']) && isOptionalCount(value.from);
}

/** Returns whether a stored value is an OpenPhase. One that has a `start` is not recorded. */
export function isOpenPhase(value: unknown): boolean {
  if (!isObject(value) || value.start !== undefined) return false;
  const isPlaced = isCount(value.index) && isOptionalCount(value.from);
  const isNamed = value.name === undefined || typeof value.name === 'string';
  return isPlaced && isNamed && typeof value.hash === 'string' && isCount(value.iteration);
}

const isOptionalCount = (value: unknown): boolean => value === undefined || isCount(value);

/** Returns a finished phase without its secrets. */
export function redactPhase(phase: PhaseOutput, by: FieldRedactor): PhaseOutput {
  return by.once(phase, ({ data, ...rest }) => ({
    ...rest,
    output: by.text(phase.output),
    ...(data === undefined ? {} : { data: by.json(data) }),
  }));
}
