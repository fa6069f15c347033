import type { Resolution } from '../../../machines/context.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { ToolFacts } from '../../run/progress.ts';
import type { RunOutput, RunResult } from '../../run/result.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import type { Claim } from '../../store/port.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { JsonObject } from '../../values/json.ts';
import type { Auditing } from '../services/auditing.ts';
import type { LoopContext } from '../services/loop-context.ts';
import type { ActiveRun } from './active-run.ts';
import type { CriticMonitor } from './critic-monitor.ts';

/** A promise with its two ends: what `Promise.withResolvers` gives, in types that ES2022 has. */
interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason?: unknown) => void;
}

/** What a run works with. The effect `resolve` fills it; a lost lease takes away what the run could write with. */
export class RunResources {
  claim: Claim | undefined;
  checkpointer: Checkpointer | null = null;
  /** One for each loop of the run; a run of a single loop has one. */
  loops: readonly LoopContext[] = [];
  /** What the run's ledger has to know of all its tools. */
  facts: ToolFacts = {};
  audit: Auditing | undefined;
  monitor: CriticMonitor | undefined;
  /** What the critic of an earlier process left. It stays in the record of a run without a critic. */
  savedCritic: JsonObject | undefined;
  /** What the store held when the run was acquired; until `resolving` is over. */
  record: RunCheckpoint | undefined;
  /** A first save that was refused may have been stored all the same, and could not be taken back. */
  hasLeftover = false;
  /** Runs that calls of this run have begun, as long as they are live. */
  readonly children: Set<ActiveRun> = new Set();
}

/** Where a run stands in this process, from its start to its end. */
export class RunLife {
  /** When this process began to work on the run, monotonic ms. */
  readonly startedAt: number;
  /** When the work was over for this process, monotonic ms: no working time is counted after it. */
  finishedAt: number | undefined;
  /** Starts since the run last recorded something new, this one included; 0 until they are known. */
  attempt = 0;
  /** Where a run that was begun earlier continues. */
  resumedFrom: { readonly iteration: number; readonly attempts: number } | undefined;

  /** Resolves when `resolving` is over, also when the actor was stopped meanwhile. */
  resolving: Promise<Resolution | undefined> = Promise.resolve(undefined);
  /** How `resolving` ended. */
  resolution: Resolution['kind'] | undefined;
  /** Why nothing was begun. */
  refusal: ErrorData | undefined;
  /** Another process has the run, and its request is the one of this start. */
  isElsewhere = false;
  /** Resolves when the run is accepted, refused or answered. */
  readonly accepted: Deferred<void> = Promise.withResolvers();

  /** Whether this process may announce the run's end: not before the run was accepted, not after it was taken over. */
  isOurs = false;
  /** Another owner has the run. */
  isLost = false;
  /** The state of the run that was published last. */
  publishedState = '';
  /** Failed saves, counted for the result. */
  saveErrors = 0;
  /** Resolves when this process has recorded something new of the run, or the run is over. */
  readonly progressed: Deferred<void> = Promise.withResolvers();

  /** The newest state is on its way into the record, past all boundaries: nothing older may follow. */
  isClosing = false;
  /** The end, once it is being recorded; it continues when the actor is stopped meanwhile. */
  settling: Promise<RunOutput> | undefined;
  /** Resolves when nothing of the end is under way any more, also past the time for finalising; perhaps never. */
  settledAtLast: Promise<void> | undefined;
  isFinished = false;
  readonly ended: Deferred<RunResult> = Promise.withResolvers();

  /** @param startedAt monotonic ms */
  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }
}
