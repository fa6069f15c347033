import { hasTexts, isCount, isObject, type JsonValue } from '../values/json.ts';
import type { FieldRedactor } from '../values/redact.ts';
import type { Spend, Usage } from '../values/usage.ts';
import type { GuardCounters } from './limits.ts';

/** What a finished phase of a multi-phase agent left behind. */
export interface PhaseOutput {
  readonly name: string;
  readonly output: string;
  readonly index?: number;
  /** Hash of the phase's definition, to see on resume whether it is still the same. */
  readonly hash?: string;
  /** Of the last phase of an agent with an output schema: the answer as the schema gave it. */
  readonly data?: JsonValue;
}

/** What a run has to know of a phase: plain data. The phase's model, tools and prompt stay with the executor. */
export interface PhaseFacts {
  readonly name: string;
  readonly hash: string;
  /** Model turns that this phase may take. */
  readonly maxIterations: number;
  /** One plain model call: what it asks of tools is not run. */
  readonly isBare: boolean;
  /** A failure is replaced by `fallback`, and the pipeline goes on. */
  readonly isOptional: boolean;
  readonly fallback: string;
  /** Where a process that takes the run over goes on: at the phase's last step, or at its beginning. */
  readonly recovery: 'step' | 'boundary';
}

/** The figures of a run at the beginning of a phase. */
export interface PhaseStart {
  readonly iteration: number;
  readonly usage: Usage;
  readonly counters: GuardCounters;
  readonly spend?: Spend;
}

/** The phase in progress. Its conversation is the run's transcript: each phase begins a new one. */
export interface OpenPhase {
  readonly index: number;
  readonly hash: string;
  /** Completed model turns of this phase. */
  readonly iteration: number;
  /**
   * Where the run stood when the phase began. Present as long as nothing of the phase is to be recorded: a phase that
   * begins anew after a crash must leave no trace of its first try.
   */
  readonly start?: PhaseStart;
}

/** Whether a stored value is a PhaseOutput. */
export function isPhaseOutput(value: unknown): boolean {
  return hasTexts(value, ['name', 'output']);
}

/** Whether a stored value is an OpenPhase. One that has a `start` is not recorded. */
export function isOpenPhase(value: unknown): boolean {
  if (!isObject(value) || value.start !== undefined) return false;
  return isCount(value.index) && typeof value.hash === 'string' && isCount(value.iteration);
}

/** A finished phase without what must not be recorded. */
export function redactPhase(phase: PhaseOutput, by: FieldRedactor): PhaseOutput {
  return by.once(phase, ({ data, ...rest }) => ({
    ...rest,
    output: by.text(phase.output),
    ...(data === undefined ? {} : { data: by.json(data) }),
  }));
}
