import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** What an escalator sees of a run. Times in ms. */
export interface EscalatorState {
  readonly runId: string;
  /** `idle`: past its soft limit, and not active. `steps`: it has used up its steps and has no answer. */
  readonly reason: 'idle' | 'steps';
  /** Completed model turns. */
  readonly iterations: number;
  readonly maxIterations: number;
  /** Wall clock of the last activity: a step, the start of a tool, a delta of the model's reply. */
  readonly lastActivityAt: number;
  /** The time since then. */
  readonly idleMs: number;
  /** Working time so far, over all processes. */
  readonly elapsedMs: number;
  /** The tool that was started last; '' = no tool yet. */
  readonly lastTool: string;
  readonly usage: Usage;
  /** The last messages, oldest first; at most 32. */
  readonly tail: readonly Message[];
  /** Idle alarms so far, this one included; over all processes. */
  readonly alarms: number;
  /** The alarms since the last completed step. */
  readonly alarmsInStep: number;
  readonly nudges: number;
  /** `iterations` at the time of the last nudge; absent = there was no nudge. */
  readonly nudgedAtStep?: number;
  /** Steps granted so far. */
  readonly raisedSteps: number;
  /** How often the escalator failed: it threw, was too slow, or returned an invalid answer. */
  readonly failures: number;
}

/** What to do with the run. `kill` overrides the other fields; `{}` and null change nothing. */
export interface EscalatorDecision {
  /** A message to the model before its next turn; the first 4,000 characters of it. */
  readonly nudge?: string;
  /** Moves the soft limit to this many ms from now. The next alarm needs a new idle period after that. */
  readonly extendByMs?: number;
  /** Grants this many more steps, a whole number; at most 1,000 at a time. */
  readonly raiseStepsBy?: number;
  /** Ends the run with status `killed`. */
  readonly kill?: true;
  /** Why; becomes part of the run's error. */
  readonly reason?: string;
}

/**
 * The host's policy for runs that take long.
 * @param signal aborted when the answer is too late: the run has ended, or the time limit has passed
 */
export type Escalator = (
  state: EscalatorState,
  signal: AbortSignal,
) => EscalatorDecision | null | undefined | Promise<EscalatorDecision | null | undefined>;
