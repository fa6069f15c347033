import type { RunEmitted } from '../../../machines/context.ts';
import { stateOf } from '../../record/state.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import { abandon, isBounded, isTakenOver } from '../../store/checkpointer.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode, hasTrait, toErrorData } from '../../values/error-data.ts';
import type { ActiveRun } from './active-run.ts';

import type { Steering } from './steering.ts';

type Boundary = Extract<RunEmitted, { type: 'boundary' }>;

/** A save may wait for the save before it, each bounded by `portMs`; a host's own checkpointer may never answer. */
const WRITES_AHEAD = 3;
const backoff: Backoff = { firstMs: 250, maxMs: 10_000 };
/** The boundaries with a finished model call: each counts as an unsaved step. That of a phase has its last one. */
const steps: ReadonlySet<Boundary['kind']> = new Set(['step', 'phase']);

/**
 * Saves a live run: the one listener between its machine and its checkpointer. It passes each requested boundary to the
 * checkpointer and reports to the machine when it is stored. While the store fails, a bounded number of finished steps, also
 * the last ones of phases, may be unsaved; an intent never may. So no tool with effects starts before the store has its intent.
 */
export class Checkpointing {
  readonly #run: ActiveRun;
  readonly #steering: Steering;
  #newest: Boundary | undefined;
  #persisted = 0;
  #awaiting: { readonly boundary: number; readonly then: () => void }[] = [];
  #unsavedSteps = 0;
  /** Failed saves, counted for the result. */
  saveErrors = 0;
  /** Saves that failed since the last one that was stored. */
  #failures = 0;
  #timer: unknown;
  /** The checkpointer of the last boundary; the active run has none after another process took the run over. */
  #checkpointer: Checkpointer | null = null;

  constructor(run: ActiveRun, steering: Steering) {
    this.#run = run;
    this.#steering = steering;
  }

  /** The run is over: nothing more is saved. */
  end(): void {
    this.#run.services.config.clock.clearTimeout(this.#timer);
    abandon(this.#checkpointer);
  }

  /** Calls a function once everything up to a boundary is stored; never, if the run ends before. */
  whenPersisted(boundary: number, then: () => void): void {
    if (boundary <= this.#persisted) then();
    else this.#awaiting.push({ boundary, then });
  }

  #tellPersisted(): void {
    if (this.#awaiting.length === 0) return;
    const ready = this.#awaiting.filter(({ boundary }) => boundary <= this.#persisted);
    this.#awaiting = this.#awaiting.filter(({ boundary }) => boundary > this.#persisted);
    for (const { then } of ready) then();
  }

  announce(boundary: Boundary): void {
    this.#newest = boundary;
    void this.#save(boundary, { force: boundary.force });
  }

  /** A save that the throttle delayed failed later; the checkpointer repeats it by itself. */
  flushFailed(error: unknown): void {
    this.#count(error);
    if (isTakenOver(error)) this.#run.loseLease(error);
  }

  async #save(boundary: Boundary, attempt: { force: boolean; isRetry?: true }): Promise<void> {
    const { services, life } = this.#run;
    const { checkpointer } = this.#run.resources;
    if (!checkpointer || !life.mayWrite) return;
    // The store may have the run: then this process writes nothing more.
    if (life.leaving) return void life.leaving.then((hasLeft) => (hasLeft ? undefined : this.#save(boundary, attempt)));
    this.#checkpointer = checkpointer;
    const { clock, defaults } = services.config;
    const { progress } = boundary;
    try {
      const askedAt = clock.monotonic();
      const save = checkpointer.save(stateOf(progress, this.#run.nowOf(progress)), { force: attempt.force });
      if (isBounded(checkpointer)) await save;
      else await withDeadline(save, { ms: WRITES_AHEAD * defaults.portMs, clock, what: 'checkpointer.save' });
      this.#hasLanded(boundary, clock.monotonic() - askedAt);
    } catch (error) {
      // A step whose save is repeated is not another unsaved step.
      if (steps.has(boundary.kind) && !attempt.isRetry) this.#unsavedSteps += 1;
      this.#onFailure(boundary, error);
    }
  }

  /** The save is stored. @param ms from its request until then */
  #hasLanded({ boundary, progress }: Boundary, ms: number): void {
    this.#persisted = Math.max(this.#persisted, boundary);
    this.#unsavedSteps = 0;
    this.#failures = 0;
    if (progress.attempts === 0) this.#run.life.progressed.resolve();
    if (this.#run.isDurable) {
      this.#steering.onPersisted(boundary);
      this.#run.publish({ type: 'checkpoint.saved', iteration: progress.iteration, ms });
    } else this.#steering.onFailure();
    this.#run.send({ type: 'boundary.persisted', boundary });
    this.#tellPersisted();
  }

  #onFailure(boundary: Boundary, error: unknown): void {
    this.#count(error);
    this.#steering.onFailure();
    const isFinal = hasTrait(error, 'isUnstorable');
    if (isTakenOver(error)) this.#run.loseLease(error);
    else if (isFinal || (this.#isBlocking(boundary) && this.#policy.then === 'fail')) this.#run.stop(error);
    else {
      if (!this.#isBlocking(boundary)) this.#run.send({ type: 'boundary.persisted', boundary: boundary.boundary });
      this.#retryLater();
    }
  }

  get #policy() {
    return this.#run.services.config.onSaveError;
  }

  /**
   * Whether the run must wait until this is stored. Finished steps, phases and steered messages may be late for a while. But
   * skipping one boundary skips all before it, and an intent among them must be stored.
   */
  #isBlocking({ kind }: Boundary): boolean {
    const mayBeBehind = steps.has(kind) || kind === 'steer';
    const hasIntents = this.#run.actor.getSnapshot().context.intents.length > 0;
    return !mayBeBehind || hasIntents || this.#unsavedSteps > this.#policy.maxUnsavedSteps;
  }

  #retryLater(): void {
    const { clock } = this.#run.services.config;
    clock.clearTimeout(this.#timer);
    this.#failures += 1;
    this.#timer = clock.setTimeout(
      () => {
        const newest = this.#newest;
        if (newest && newest.boundary > this.#persisted) void this.#save(newest, { force: true, isRetry: true });
      },
      backoffMs(this.#failures, backoff),
    );
  }

  #count(error: unknown): void {
    const { runId, services } = this.#run;
    this.saveErrors += 1;
    if (hasCode(error, 'STORE_FULL')) services.fullAt = services.config.clock.monotonic();
    this.#run.publish({ type: 'checkpoint.failed', error: toErrorData(error) });
    if (this.saveErrors === 1) services.config.warn('checkpoint.save.failed', { runId, error });
  }
}
