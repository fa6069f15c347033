import type { RunContext } from '../../../machines/context.ts';
import { childToolPrefixes } from '../../agent/names.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { ParkedReason } from '../../run/fields.ts';
import { MAX_LEVELS } from '../../run/limits.ts';
import type { Progress } from '../../run/progress.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import { RunSlicedError } from '../../values/errors.ts';
import type { ActiveRun } from './active-run.ts';
import type { RunSlicing } from './run-state.ts';

/** How long a process may work on a run. */
export interface SliceLimits {
  /** After this time no model call and no tool starts, ms. */
  readonly budgetMs: number;
  /** How long calls that are under way may then last, ms. */
  readonly graceMs: number;
}

/** The shares of the grace after which model calls and `read` calls end, and after which every call ends. */
const READS_SHARE = 0.75;
const EFFECTS_SHARE = 0.9;

/**
 * The time that this process has for a live run. When the budget is over, the run begins no call any more, and leaves when
 * those under way have ended. A slice begins at least one call before its budget can end it.
 */
export class Slice {
  readonly #run: ActiveRun;
  readonly #limits: SliceLimits;
  #timer: unknown;
  #hasBegun = false;
  /** A call began a run, whose own calls count. */
  #isCallingRun = false;
  #isBudgetOver = false;
  #isOver = false;
  /** A slice that the host ended early counts nothing. */
  #isCounted = true;
  /** Whether a call was cut. */
  #longestMs: number | undefined;
  /** When the calls under way began, monotonic ms: the model's as '', a tool's by its id. */
  readonly #begun = new Map<string, number>();
  /** Whether the record had an open step when the slice began. */
  #hadStep: boolean | undefined;

  constructor(run: ActiveRun, limits: SliceLimits) {
    this.#run = run;
    this.#limits = limits;
    // Without a budget one call begins; a timer could come after many.
    if (limits.budgetMs > 0) this.#wait(limits.budgetMs, () => this.#endBudget());
    else this.#isBudgetOver = true;
    run.observe({ onEvent: (event) => this.#note(event) });
    run.onEnd(() => run.services.config.clock.clearTimeout(this.#timer));
  }

  /** Whether the host ended it before its time. */
  get isEndedEarly(): boolean {
    return !this.#isCounted;
  }

  /** Ends the budget now. Calls under way have their grace, and the slice counts as no failed start. */
  end({ graceMs = this.#limits.graceMs }: { readonly graceMs?: number } = {}): void {
    this.#isCounted = false;
    this.#yield(graceMs);
  }

  /** Notes the calls of a run that a call of this one begins: a slice that ends before the first of them would get nowhere. */
  follow(child: ActiveRun): void {
    if (this.#hasBegun) return;
    child.observe({
      onEvent: (event) => {
        if (!this.#hasBegun && isCallOfModelOrTool(event)) this.#begin();
      },
    });
  }

  /** Returns the state that the slice leaves: with its failed starts, and parked if there were too many. */
  left(progress: Progress): Progress {
    const { services, seed, startFacts } = this.#run;
    const maxAttempts = seed.maxAttempts ?? services.config.defaults.maxAttempts;
    if (progress.parked || !this.#isWasted(progress)) return { ...progress, attempts: 0 };
    if (startFacts.starts < maxAttempts) return { ...progress, attempts: startFacts.starts };
    return { ...progress, attempts: startFacts.starts, parked: this.#tooShort(maxAttempts) };
  }

  /** A call was cut, and the record has nothing that it did not have before. */
  #isWasted({ attempts, openStep }: Progress): boolean {
    const isNewStep = openStep !== undefined && this.#hadStep === false;
    return this.#isCounted && this.#longestMs !== undefined && attempts > 0 && !isNewStep;
  }

  #tooShort(times: number): ParkedReason {
    const { budgetMs, graceMs } = this.#limits;
    const ms = Math.round(this.#longestMs ?? 0);
    const limits = `a budget of ${budgetMs} ms and a grace of ${graceMs} ms`;
    const reason = `${times} slices in a row ended in the middle of a call that had taken ${ms} ms (${limits}): nothing was recorded`;
    return { code: 'SLICE_TOO_SHORT', reason };
  }

  #note(event: RunEvent): void {
    if (event.type !== 'step.started' && event.type !== 'tool.started' && event.type !== 'tool.done') return;
    const call = event.type === 'step.started' ? '' : event.callId;
    if (event.type === 'tool.done') return void this.#begun.delete(call);
    if (call !== '') this.#begun.delete('');
    this.#begun.set(call, this.#run.services.config.clock.monotonic());
    this.#hadStep ??= call !== '';
    if (isCallOfModelOrTool(event)) this.#begin();
    else this.#isCallingRun = true;
    this.#limitStart();
  }

  /** A call of a model or a tool has begun. */
  #begin(): void {
    this.#hasBegun = true;
    if (this.#isBudgetOver) this.#yield(this.#limits.graceMs);
  }

  #endBudget(): void {
    this.#isBudgetOver = true;
    if (this.#hasBegun) this.#yield(this.#limits.graceMs);
    this.#limitStart();
  }

  /** A child that another process has begins nothing here: then half of the grace is for its first call. */
  #limitStart(): void {
    if (!this.#isBudgetOver || this.#hasBegun || !this.#isCallingRun || this.#isOver) return;
    const half = this.#limits.graceMs / 2;
    this.#wait(half, () => this.#yield(half));
  }

  #yield(graceMs: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const cause = toErrorData(new RunSlicedError(`the slice of run ${this.#run.runId} is over; the run is due`));
    yieldTree(this.#run, cause);
    this.#wait(graceMs * READS_SHARE, () => this.#cut(cause, graceMs));
  }

  #cut(cause: ErrorData, graceMs: number): void {
    const now = this.#run.services.config.clock.monotonic();
    if (isCalling(this.#run)) this.#longestMs = now - Math.min(now, ...this.#begun.values());
    for (const run of treeOf(this.#run)) run.send({ type: 'run.leave', cause });
    this.#wait(graceMs * (EFFECTS_SHARE - READS_SHARE), () => this.#run.stop(cause));
  }

  #wait(ms: number, then: () => void): void {
    const { clock } = this.#run.services.config;
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(then, ms);
  }
}

/** Ends the work of a run and of its running children at their next points between two calls. */
export function yieldTree(run: ActiveRun, cause: ErrorData): void {
  for (const each of treeOf(run)) each.send({ type: 'run.yield', cause });
}

/** Returns why the slice of a run is over; undefined: it is not, or the run is not driven. */
export function sliceEndOf({ actor }: ActiveRun): ErrorData | undefined {
  return (actor.getSnapshot().context as RunContext | undefined)?.yielding;
}

/** Returns whether this process has a run, or the run that called it, for a time only. */
export function isDriven(run: ActiveRun): boolean {
  return sliceOf(run) !== undefined;
}

/** Returns the slice of a run, or of the run that called it. */
export function sliceOf(run: ActiveRun): RunSlicing | undefined {
  let at: ActiveRun | undefined = run;
  // Damaged records may name each other.
  for (let depth = 0; at && depth <= MAX_LEVELS; depth++) {
    if (at.slice) return at.slice;
    at = at.parent && run.services.registry.live(at.parent.runId);
  }
  return undefined;
}

/** Returns a run and its running children. The deepest come first: a run that leaves makes its children leave. */
export function treeOf(run: ActiveRun): readonly ActiveRun[] {
  return [...[...run.resources.children].flatMap(treeOf), run];
}

/** Whether the run waits for its model, or for a tool. */
function isCalling({ actor }: ActiveRun): boolean {
  const { value, context } = actor.getSnapshot();
  const isAsking = typeof value === 'object' && Object.values(value)[0] === 'calling-model';
  return isAsking || (context.progress.openStep?.calls ?? []).some(({ state }) => state === 'started');
}

/** Whether an event says that a call of a model or a tool has begun, and not one that is a run of its own. */
function isCallOfModelOrTool(event: RunEvent): boolean {
  if (event.type !== 'tool.started') return event.type === 'step.started';
  return !childToolPrefixes.some((prefix) => event.name.startsWith(prefix));
}
