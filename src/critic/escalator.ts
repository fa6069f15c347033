import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** What an escalator is shown of a run. Times in ms. */
export interface EscalatorState {
  readonly runId: string;
  /** `idle`: past its soft limit, and silent. `steps`: it has used up its steps and has no answer. */
  readonly reason: 'idle' | 'steps';
  /** Completed model turns, and how many are allowed. */
  readonly iterations: number;
  readonly maxIterations: number;
  /** Wall clock of the last sign of life: a step, the start of a tool, a piece of the model's answer. */
  readonly lastActivityAt: number;
  /** For how long there has been none. */
  readonly idleMs: number;
  /** Working time so far, over all processes. */
  readonly elapsedMs: number;
  /** The tool that was started last; '' = none yet. */
  readonly lastTool: string;
  readonly usage: Usage;
  /** The last messages, oldest first; at most 32. */
  readonly tail: readonly Message[];
  /** Idle alarms so far, this one included; over all processes. */
  readonly alarms: number;
  /** Those since the last finished step. */
  readonly alarmsInStep: number;
  readonly nudges: number;
  /** `iterations` at the time of the last nudge; absent = there was none. */
  readonly nudgedAtStep?: number;
  /** Steps granted so far. */
  readonly raisedSteps: number;
  /** How often the escalator failed: it threw, was too slow, or answered nonsense. */
  readonly failures: number;
}

/** What is to be done. With `kill` nothing else counts; `{}` and null change nothing. */
export interface EscalatorDecision {
  /** Said to the model before its next turn; up to 4,000 characters of it. */
  readonly nudge?: string;
  /** Moves the soft limit to so many ms from now. Only silence after that raises the next alarm. */
  readonly extendByMs?: number;
  /** So many more steps, a whole number; at most 1,000 at a time. */
  readonly raiseStepsBy?: number;
  /** Ends the run with status `killed`. */
  readonly kill?: true;
  /** Why; part of the run's error. */
  readonly reason?: string;
}

/**
 * The host's policy for runs that take long.
 * @param signal aborted when the answer comes too late to matter: the run is over, or the deadline has passed
 */
export type Escalator = (
  state: EscalatorState,
  signal: AbortSignal,
) => EscalatorDecision | null | undefined | Promise<EscalatorDecision | null | undefined>;
