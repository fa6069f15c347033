import type { RunInfo } from '../run/request.ts';
import type { Clock } from '../values/clock.ts';
import type { JsonObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** An activity of the run: a step, the start of a tool, or a delta. */
export type Activity =
  | { readonly type: 'step'; readonly step: number; readonly tools: readonly string[] }
  | { readonly type: 'tool'; readonly name: string }
  | { readonly type: 'delta' };

/** What a critic sees of a run, and how it can change the run. After the run's end these calls do nothing. */
export interface SupervisedRun {
  /** The clock of the run; the critic uses it for all its timers. */
  readonly clock: Clock;
  /** The agent's `maxRuntimeMs`: from here on the critic checks the run. Working time over all processes, ms. */
  readonly softLimitMs: number;
  /** The `state()` that the critic of an earlier process saved. */
  readonly saved?: JsonObject;
  /** Working time so far, over all processes, ms. */
  elapsedMs(): number;
  /** Completed model turns, their limit, and their usage. */
  tallies(): { readonly iteration: number; readonly maxIterations: number; readonly usage: Usage };
  /** The last messages, oldest first. @param count default 6 */
  tail(count?: number): readonly Message[];
  /** Sends a message to the model before its next turn. Durable, like a steered message. */
  nudge(text: string): void;
  /** Grants more steps. Stored in the record; the limits of a pipeline's phases do not change. */
  raiseSteps(by: number): void;
  /** Ends the run with status `killed`. */
  kill(reason: string): void;
}

/** A critic that watches one run. */
export interface CriticHandle {
  onActivity(activity: Activity): void;
  /**
   * Called when the run reaches its step limit. Resolves when the critic has decided. If the critic has raised the limit by
   * then, the run continues. Absent: the limit stays.
   */
  onOutOfSteps?(): Promise<void>;
  /** The state that must survive a crash; plain JSON, stored with each save. */
  state?(): JsonObject;
  /** Called when the run ends, or this process loses it. */
  stop(): void;
}

/** Watches runs that take long. */
export interface Critic {
  /** @returns null if the critic does not watch this run; `maxRuntimeMs` is then its hard limit */
  monitor(info: RunInfo, run: SupervisedRun): CriticHandle | null;
}
