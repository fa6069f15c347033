import type { InspectionEvent, Observer } from 'xstate';
import type { Agent } from '../../agent/agent.ts';
import type { Audit } from '../../audit/port.ts';
import type { Budget } from '../../budget/port.ts';
import type { Compactor } from '../../compaction/port.ts';
import type { Critic } from '../../critic/port.ts';
import type { Models } from '../../model/port.ts';
import type { Palette } from '../../palette/port.ts';
import type { Migrate } from '../../record/migrate.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { ResumeState } from '../../run/resume.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { CheckpointerFactory } from '../../store/factory.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Tool } from '../../tool/define.ts';
import type { Clock } from '../../values/clock.ts';
import type { Redaction } from '../../values/redact.ts';
import type { Usage } from '../../values/usage.ts';
import type { Middleware } from './middleware.ts';
import type { RunObserver } from './observers.ts';

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
  /** Most characters of one reply: text, reasoning, arguments, sources, files and metadata count. */
  readonly maxReplyChars: number;
  /** Most bytes of the arguments of one call. A call with more is not run; the model reads why. */
  readonly maxCallInputBytes: number;
  /** Most tool calls of one reply. */
  readonly maxCallsPerMessage: number;
  readonly toolTimeoutMs: number;
  /** Longest wait for any port or store call. */
  readonly portMs: number;
  /** Longest time that finalising a run may take. */
  readonly finalizeMs: number;
  /** How long a claim holds without renewal; it is renewed every third of that. */
  readonly leaseMs: number;
  /** How often the store is asked what other processes have to say to the runs that are live here. */
  readonly controlMs: number;
}

/** What a host may plug in, each on its own. Whatever a port does, runs end: what it throws is logged, or is their result. */
export interface Ports {
  /** Decides run by run whether it is recorded, and how. */
  readonly checkpointer?: CheckpointerFactory;
  /** Who may spend how much. */
  readonly budget?: Budget;
  /** Remembers runs when their records are gone. */
  readonly audit?: Audit;
  /** Watches runs that take long. */
  readonly critic?: Critic;
  /** The agents and skills that agents may put to work. */
  readonly palette?: Palette;
}

/** Who gets XState's inspection events: a function, or an observer as inspectors give one. */
export type Inspect = ((event: InspectionEvent) => void) | Observer<InspectionEvent>;

export interface ExecutorOptions {
  /** AI SDK language models by tier (spec v4; v3 and v2 are adapted), or a function that finds one. */
  readonly models: Models;
  /** Tools that agents name, and that a recovered run finds again. */
  readonly tools?: readonly Tool[];
  /** Agents that `recover` may continue. */
  readonly agents?: readonly Agent[];
  /** Shorthand for `ports.checkpointer = createCheckpointerFactory(store)`. Without either no run is durable. */
  readonly checkpoints?: CheckpointStore;
  readonly ports?: Ports;
  readonly defaults?: Partial<Defaults>;
  /** Refuse runs that cannot be recorded, instead of running them without. */
  readonly requireDurable?: boolean;
  /** While saves fail: how many finished steps may be unsaved, and then wait for the store or fail the run. */
  readonly onSaveError?: { readonly maxUnsavedSteps?: number; readonly then?: 'wait' | 'fail' };
  /** A `once` call was under way when the process died: tell the model so, or set the run aside for a person. */
  readonly onUnknownOutcome?: 'tell-model' | 'park';
  /**
   * An agent's list of phases no longer matches a record: set the run aside for a person (`refuse`, the default), begin it
   * anew (`restart`), or keep the completed phases that still match (`continue-matching`).
   */
  readonly onDefinitionChange?: 'refuse' | 'restart' | 'continue-matching';
  /** Changes a stored record before its run goes on, where a deploy has renamed what it names. */
  readonly migrate?: Migrate;
  /**
   * Gives texts back without what nobody must see, before they go into records, events, the audit, logs and inspectors. The
   * living run, its result and its callbacks have the texts as they are; a run that goes on in another process has the redacted ones.
   */
  readonly redact?: Redaction;
  /** Goes before the instructions of every agent. */
  readonly systemHeader?: string;
  /** Shortens a history that outgrows the model's context window, for the model's eyes only; see `contextTokens`. */
  readonly compactor?: Compactor;
  /** Context windows by tier, in tokens. Without a figure for its tier a history is sent whole. */
  readonly contextTokens?: { readonly [tier: string]: number } | ((tier: string) => number | undefined);
  /** Told of each run's end, at least once, with a stable `outcomeId`. A rejection keeps the record for another delivery. */
  readonly onOutcome?: (outcome: RunOutcome) => Promise<void> | void;
  /** How long stores keep answers after the record is gone; default 7 days. */
  readonly keepOutcomesMs?: number;
  readonly clock?: Clock;
  /** For the jitter of retries: a number from 0 to 1; default Math.random. */
  readonly random?: () => number;
  /**
   * Makes run ids, each one new; default: random UUIDs. The id of another run that is live, stored or kept is RUN_ID_CONFLICT.
   * Where it throws, or gives what no host may give as a run id, a random one is used, with a warning.
   */
  readonly ids?: () => string;
  readonly logger?: Logger;
  /** XState's inspection events of every run. What it throws is logged and changes nothing. */
  readonly inspect?: Inspect;
  readonly onStep?: (step: StepInfo) => void;
  /** Functions around each model call and each tool call of every run; the first is the outermost. */
  readonly middleware?: readonly Middleware[];
  /** Each gets the events of every run, after `redact`. */
  readonly observers?: readonly RunObserver[];
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
  /**
   * Continues from this state instead of from the prompt. Its `history` is sent as it is, and the prompt, the images and the
   * `history` of the invocation are ignored. Without a `history`, for example `{ completedPhases }`, the run (or its next phase)
   * begins with the prompt. A run that is stored under this `runId` goes on from its record, and nothing of this state is used: a
   * start that is repeated must not make recorded calls again. To begin a new run with an earlier conversation, use `invocation.history`.
   */
  readonly resume?: ResumeState;
  /** An existing checkpointer; the factory is not asked. */
  readonly checkpointer?: Checkpointer;
  readonly inspect?: Inspect;
  readonly onStep?: (step: StepInfo) => void;
}
