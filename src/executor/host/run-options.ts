import type { InspectionEvent, Observer } from 'xstate';
import type { ResumeState } from '../../run/resume.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { Usage } from '../../values/usage.ts';

/** Gets XState's inspection events: a function, or an observer as inspectors provide it. */
export type Inspect = ((event: InspectionEvent) => void) | Observer<InspectionEvent>;

/** The argument of `onStep`, after each finished step. */
export interface StepInfo {
  readonly runId: string;
  readonly iteration: number;
  readonly usage: Usage;
  /** Names of the tools that the step called. */
  readonly tools: readonly string[];
}

/** Options of one run besides its invocation. */
export interface RunOptions {
  /**
   * An abort stops the run: a reason with code ERR_SHUTDOWN leaves it for the next process, any other cancels it.
   * @default none
   * @example signal: AbortSignal.timeout(60_000)
   */
  readonly signal?: AbortSignal;
  /**
   * Continues from this state instead of from the prompt. Its `history` is sent as it is, and the prompt, the images and the
   * `history` of the invocation are ignored. Without a `history`, for example `{ completedPhases }`, the run (or its next phase)
   * begins with the prompt. If a run is stored under this `runId`, it continues from its record and ignores this state: a
   * repeated start must not make recorded calls again. To begin a new run with an earlier conversation, use `invocation.history`.
   * @default none
   * @example resume: { completedPhases }
   */
  readonly resume?: ResumeState;
  /**
   * An existing checkpointer; the factory is not called.
   * @default one of the store
   * @example checkpointer: ownCheckpointer
   */
  readonly checkpointer?: Checkpointer;
  /**
   * `later`: admits the run, and works on none of it. Request and budget are checked, the first record is stored, and the run is due:
   * `executor.drive`, another process, or the sweep of this one works on it. Needs a store; without one the start is refused with
   * NOT_DURABLE. The handle follows the store (`onStep`, `inspect` are not called): see `Run`.
   * @default none: this process works on it
   */
  readonly drive?: 'later';
  /**
   * `retry`: a run of this request that has ended badly continues, as with `executor.retry`.
   * @default none: the start returns its end
   */
  readonly ifFailed?: 'retry';
  /**
   * Gets XState's inspection events of this run, besides that of the executor.
   * @default none
   * @example inspect: createBrowserInspector().inspect
   */
  readonly inspect?: Inspect;
  /**
   * Called after each finished step of this run, besides that of the executor.
   * @default none
   * @example onStep: ({ iteration }) => console.log(iteration)
   */
  readonly onStep?: (step: StepInfo) => void;
}
