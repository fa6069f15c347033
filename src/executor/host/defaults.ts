import type { ModelChoice } from '../../model/port.ts';
import { replyLimits } from '../../model/reply-limits.ts';
import type { CutAnswer } from '../../run/reply.ts';

/** Values for everything that neither the agent nor the invocation sets. Times in milliseconds. */
export interface Defaults {
  /** The model, or the tier, of an agent that names none. */
  readonly model: ModelChoice;
  /** Most steps of a run, or of a phase; then STEP_LIMIT. */
  readonly maxSteps: number;
  /** Longest working time of a run, over all its processes; waits do not count. */
  readonly maxRuntimeMs: number;
  /** Most steps in a row in which each call failed; then TOOL_LOOP. */
  readonly maxConsecutiveToolErrors: number;
  /** Most steps in a row with one identical call; then TOOL_LOOP. */
  readonly maxSameToolCallRepeats: number;
  /** Most tool calls of one message that run at the same time. */
  readonly toolConcurrency: number;
  /** How deep agents that call agents may be nested, 32 at most. The call of a deeper one fails, and its model reads why. */
  readonly maxDepth: number;
  /** Most runs below one run, at all levels, ended ones included. The call of a further one fails, and its model reads why. */
  readonly maxTreeRuns: number;
  /** How many times a model call is made in one process while its errors may pass, the first time included. */
  readonly modelAttempts: number;
  /** Longest time for those attempts, from the first failure; a longer `retry-after` of the provider ends them at once. */
  readonly modelRetryMs: number;
  /** How long a durable run then waits for its model, from the first failure; 0 = it fails at once. */
  readonly modelOutageMs: number;
  /** How long processes try a run that the setup of none of them can continue, before it is parked. */
  readonly setupMs: number;
  /** Longest wait for the first chunk of a model's answer. */
  readonly firstChunkMs: number;
  /** Longest silence between two chunks. */
  readonly chunkGapMs: number;
  /** What a run does with an answer that reached its length limit, if its agent does not say. */
  readonly onCutAnswer: CutAnswer;
  /** Most characters of one reply: text, reasoning, arguments, sources, files and metadata count. */
  readonly maxReplyChars: number;
  /** Most bytes of the arguments of one call. A call with more is not run; the model reads why. */
  readonly maxCallInputBytes: number;
  /** Most tool calls of one reply. */
  readonly maxCallsPerMessage: number;
  /** Longest time of one tool call; waits do not count. */
  readonly toolTimeoutMs: number;
  /** Longest wait for any port or store call. */
  readonly portMs: number;
  /** Longest time that finalising a run may take. */
  readonly finalizeMs: number;
  /** How long a claim is valid without renewal; it is renewed every third of that. */
  readonly leaseMs: number;
  /** How often the store is asked for commands of other processes to the runs that are live here. */
  readonly controlMs: number;
  /** Starts of a run in a row without progress before it is parked; the option of `recover` has precedence. */
  readonly maxAttempts: number;
  /** How long a run that waits stays in its process before it is suspended in the store. */
  readonly waitLingerMs: number;
  /** How long a run waits for a person before `notify` gets a notice of it. */
  readonly notifyAfterMs: number;
  /** How often the store is asked for runs that are due. */
  readonly dueMs: number;
}

/** The values of an executor that sets none. */
export const usualDefaults: Defaults = {
  model: 'fast',
  maxSteps: 20,
  maxRuntimeMs: 600_000,
  maxConsecutiveToolErrors: 3,
  maxSameToolCallRepeats: 3,
  toolConcurrency: 8,
  maxDepth: 8,
  maxTreeRuns: 1_000,
  modelAttempts: 5,
  modelRetryMs: 60_000,
  modelOutageMs: 86_400_000,
  setupMs: 86_400_000,
  firstChunkMs: 120_000,
  chunkGapMs: 60_000,
  onCutAnswer: 'accept',
  ...replyLimits,
  toolTimeoutMs: 120_000,
  portMs: 30_000,
  finalizeMs: 10_000,
  leaseMs: 30_000,
  controlMs: 500,
  maxAttempts: 3,
  waitLingerMs: 1_000,
  notifyAfterMs: 3_600_000,
  dueMs: 1_000,
};
