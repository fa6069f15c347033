import type { CheckpointOutcome } from '../src/run/finalize.ts';
import type { PhaseOutput } from '../src/run/phase.ts';
import type { Progress } from '../src/run/progress.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { Transcript } from '../src/run/transcript.ts';
import type { Judgement } from '../src/run/waits/wait-rules.ts';
import type { ErrorData } from '../src/values/error-data.ts';
import type { JsonValue } from '../src/values/json.ts';
import type { ModelAnswer, OutputCheck, Resolution, Rested, RunInput, ToolAnswer } from './context.ts';
import { task } from './task.ts';
import type { ToolCallInput } from './tool-calls.ts';

function notProvided(): never {
  throw new Error('this actor is provided by the executor: use executor.logic(agent), or machine.provide({ actors })');
}

export interface ModelCallInput {
  readonly transcript: Transcript;
  readonly iteration: number;
  /** The turn of its loop, from 1. */
  readonly turn: number;
  /** In a pipeline: the phase that asks, and the outputs of the phases before it. */
  readonly phase?: number;
  readonly completedPhases: readonly PhaseOutput[];
}

/** A step that is about to open, with its calls under their final ids. */
export interface JudgeInput {
  readonly progress: Progress;
  readonly phase?: number;
}

export interface SettleInput {
  readonly outcome: CheckpointOutcome;
  readonly progress: Progress;
  readonly error?: ErrorData;
  readonly cause?: ErrorData;
  readonly data?: JsonValue;
}

/** Why a run of a host's machine was left, and the cancel that has come for it since. */
export interface RetryInput {
  readonly output: RunOutput;
  readonly cancel?: ErrorData;
}

/** All effects of a run, as the charts know them. */
export const actors = {
  resolve: task<Resolution, { progress: Progress }>(notProvided),
  'call-model': task<ModelAnswer, ModelCallInput>(notProvided),
  'call-tool': task<ToolAnswer, ToolCallInput>(notProvided),
  'check-output': task<OutputCheck, { progress: Progress }>(notProvided),
  'ask-critic': task<void>(notProvided),
  'judge-calls': task<readonly Judgement[], JudgeInput>(notProvided),
  'take-turn': task<void>(notProvided),
  rest: task<Rested>(notProvided),
  settle: task<RunOutput, SettleInput>(notProvided),
  'await-retry': task<RunInput, RetryInput>(notProvided),
};
