import type { RunInfo } from '../run/request.ts';
import type { Clock } from '../values/clock.ts';
import type { JsonObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** A sign of life of the run. */
export type Activity =
  | { readonly type: 'step'; readonly step: number; readonly tools: readonly string[] }
  | { readonly type: 'tool'; readonly name: string }
  | { readonly type: 'delta' };

/** What a critic sees of the run it watches, and what it may do to it. After the run's end all of it does nothing. */
export interface SupervisedRun {
  /** Where this run is in time; everything a critic waits for goes by it. */
  readonly clock: Clock;
  /** The agent's `maxRuntimeMs`: from here on a critic looks closer. Working time over all processes, ms. */
  readonly softLimitMs: number;
  /** What the critic of an earlier process left as its `state`. */
  readonly saved?: JsonObject;
  /** Working time so far, over all processes, ms. */
  elapsedMs(): number;
  /** Completed model turns, and what they used. */
  tallies(): { readonly iteration: number; readonly maxIterations: number; readonly usage: Usage };
  /** The last messages, oldest first. @param count default 6 */
  tail(count?: number): readonly Message[];
  /** Says something to the model before its next turn. Durable, like a steered message. */
  nudge(text: string): void;
  /** Allows so many more steps. Part of the record; a pipeline's phases keep their own caps. */
  raiseSteps(by: number): void;
  /** Ends the run: status `killed`. */
  kill(reason: string): void;
}

/** A critic at work on one run. */
export interface CriticHandle {
  onActivity(activity: Activity): void;
  /**
   * The step limit is reached. Resolves when the critic has thought about it; when it has raised the limit by then, the
   * run goes on. Absent: the limit stands.
   */
  onOutOfSteps?(): Promise<void>;
  /** What has to survive a crash; plain JSON, stored with each save. */
  state?(): JsonObject;
  /** The run is over, or left. */
  stop(): void;
}

/** Watches runs that take long. */
export interface Critic {
  /** @returns null = this run is not watched, and `maxRuntimeMs` is its hard limit */
  monitor(info: RunInfo, run: SupervisedRun): CriticHandle | null;
}
