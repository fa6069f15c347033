import type { InspectionEvent } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import type { Models } from '../model/port.ts';
import type { Clock } from '../run/clock.ts';
import type { RunOutcome } from '../run/result.ts';
import type { ResumeState } from '../run/resume.ts';
import type { Usage } from '../run/usage.ts';
import type { Checkpointer } from '../store/checkpointer.ts';
import type { CheckpointerFactory } from '../store/factory.ts';
import type { CheckpointStore } from '../store/port.ts';
import type { Tool } from '../tool/define.ts';

/** Where warnings go. Default: the console. */
export interface Logger {
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** What holds where neither the agent nor the invocation says anything. Times in milliseconds. */
export interface Defaults {
  readonly modelTier: string;
  readonly maxIterations: number;
  readonly maxRuntimeMs: number;
  readonly maxConsecutiveToolErrors: number;
  readonly maxSameToolCallRepeats: number;
  readonly toolConcurrency: number;
  /** How often a model call is made that fails in a way that may pass, the first time included. */
  readonly modelAttempts: number;
  /** Longest wait for the first chunk of a model's answer. */
  readonly firstChunkMs: number;
  /** Longest silence within one. */
  readonly chunkGapMs: number;
  readonly toolTimeoutMs: number;
  /** Longest wait for any port or store call. */
  readonly portMs: number;
  /** Longest time that finalising a run may take. */
  readonly finalizeMs: number;
  /** How long a claim holds without renewal; it is renewed every third of that. */
  readonly leaseMs: number;
}

export interface ExecutorOptions {
  /** AI SDK language models by tier (spec v4; v3 and v2 are adapted), or a function that finds one. */
  readonly models: Models;
  /** Tools that agents name, and that a recovered run finds again. */
  readonly tools?: readonly Tool[];
  /** Agents that `recover` may continue. */
  readonly agents?: readonly Agent[];
  /** Shorthand for `ports.checkpointer = createCheckpointerFactory(store)`. Without either no run is durable. */
  readonly checkpoints?: CheckpointStore;
  readonly ports?: { readonly checkpointer?: CheckpointerFactory };
  readonly defaults?: Partial<Defaults>;
  /** Refuse runs that cannot be recorded, instead of running them without. */
  readonly requireDurable?: boolean;
  /** While saves fail: how many finished steps may be unsaved, and then wait for the store or fail the run. */
  readonly onSaveError?: { readonly maxUnsavedSteps?: number; readonly then?: 'wait' | 'fail' };
  /** A `once` call was under way when the process died: tell the model so, or set the run aside for a person. */
  readonly onUnknownOutcome?: 'tell-model' | 'park';
  /** Told of each run's end, at least once, with a stable `outcomeId`. A rejection keeps the record for another delivery. */
  readonly onOutcome?: (outcome: RunOutcome) => Promise<void> | void;
  /** How long stores keep answers after the record is gone; default 7 days. */
  readonly keepOutcomesMs?: number;
  readonly clock?: Clock;
  /** For the jitter of retries: a number from 0 to 1; default Math.random. */
  readonly random?: () => number;
  /** Makes run ids; default: random UUIDs. */
  readonly ids?: () => string;
  readonly logger?: Logger;
  /** XState's inspection events of every run. What it throws is logged and changes nothing. */
  readonly inspect?: (event: InspectionEvent) => void;
  readonly onStep?: (step: StepInfo) => void;
}

/** Told after each finished step. */
export interface StepInfo {
  readonly runId: string;
  readonly iteration: number;
  readonly usage: Usage;
  /** Names of the tools that the step called. */
  readonly tools: readonly string[];
}

/** What one run may be given besides its invocation. */
export interface RunOptions {
  /** Aborting it stops the run: a reason with code ERR_SHUTDOWN leaves it for the next process, any other cancels it. */
  readonly signal?: AbortSignal;
  /** Go on from this state instead of from the prompt. */
  readonly resume?: ResumeState;
  /** An existing checkpointer; the factory is not asked. */
  readonly checkpointer?: Checkpointer;
  readonly inspect?: (event: InspectionEvent) => void;
  readonly onStep?: (step: StepInfo) => void;
}
