import type { RunEmitted } from '../../../machines/context.ts';
import { stateOf } from '../../record/state.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import { abandon, isBounded, isTakenOver } from '../../store/checkpointer.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasTrait, toErrorData } from '../../values/error-data.ts';
import type { RunScope } from './active-run.ts';

import type { Steering } from './steering.ts';

type Boundary = Extract<RunEmitted, { type: 'boundary' }>;

/** Trying again does not help against these. */
/** A save may have to wait for the one in flight, each bounded by `portMs`; a host's own checkpointer may never answer. */
const WRITES_AHEAD = 3;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 10_000;

/**
 * The one listener between a run's machine and its checkpointer: hands each announced boundary over and tells the
 * machine when it has landed. While the store fails, a bounded number of finished steps may go on unsaved; an intent
 * never does, so that no tool with effects starts before the store knows of it.
 */
export class Saving {
  readonly #scope: RunScope;
  readonly #steering: Steering;
  #newest: Boundary | undefined;
  #landed = 0;
  #unsavedSteps = 0;
  #retryMs = FIRST_RETRY_MS;
  #timer: unknown;
  /** What the last boundary was handed to; the scope knows it no longer when the run was taken over. */
  #checkpointer: Checkpointer | null = null;

  constructor(scope: RunScope, steering: Steering) {
    this.#scope = scope;
    this.#steering = steering;
    scope.onEnd(() => {
      scope.kernel.config.clock.clearTimeout(this.#timer);
      abandon(this.#checkpointer);
    });
  }

  announce(boundary: Boundary): void {
    this.#newest = boundary;
    void this.#save(boundary, { force: boundary.force });
  }

  /** A save that the throttle had put off failed later; the checkpointer tries it again by itself. */
  flushFailed(error: unknown): void {
    this.#count(error);
    if (isTakenOver(error)) this.#scope.loseLease(error);
  }

  async #save(boundary: Boundary, attempt: { force: boolean; isRetry?: true }): Promise<void> {
    const { checkpointer, kernel, isClosing } = this.#scope;
    if (!checkpointer || isClosing) return;
    this.#checkpointer = checkpointer;
    const { clock, defaults } = kernel.config;
    const { progress } = boundary;
    try {
      const save = checkpointer.save(stateOf(progress, this.#scope.nowOf(progress)), { force: attempt.force });
      if (isBounded(checkpointer)) await save;
      else await withDeadline(save, { ms: WRITES_AHEAD * defaults.portMs, clock, what: 'checkpointer.save' });
      this.#hasLanded(boundary);
    } catch (error) {
      // A step that is tried again is no further unsaved step.
      if (boundary.kind === 'step' && !attempt.isRetry) this.#unsavedSteps += 1;
      this.#failed(boundary, error);
    }
  }

  #hasLanded({ boundary, progress }: Boundary): void {
    this.#landed = Math.max(this.#landed, boundary);
    this.#unsavedSteps = 0;
    this.#retryMs = FIRST_RETRY_MS;
    if (progress.attempts === 0) this.#scope.progressed.resolve();
    if (this.#scope.isDurable) {
      this.#steering.landed(boundary);
      this.#scope.publish({ type: 'checkpoint.saved', iteration: progress.iteration });
    } else this.#steering.failed();
    this.#scope.send({ type: 'boundary.landed', boundary });
  }

  #failed(boundary: Boundary, error: unknown): void {
    this.#count(error);
    this.#steering.failed();
    const isFinal = hasTrait(error, 'isUnstorable');
    if (isTakenOver(error)) this.#scope.loseLease(error);
    else if (isFinal || (this.#isBlocking(boundary) && this.#policy.then === 'fail')) this.#scope.stop(error);
    else {
      if (!this.#isBlocking(boundary)) this.#scope.send({ type: 'boundary.landed', boundary: boundary.boundary });
      this.#retryLater();
    }
  }

  get #policy() {
    return this.#scope.kernel.config.onSaveError;
  }

  /**
   * Whether the run must not go on before this has landed. Finished steps and steered messages may be behind for a while;
   * but to pass over one is to pass over all before it, and an intent among those must not be.
   */
  #isBlocking({ kind }: Boundary): boolean {
    const mayBeBehind = kind === 'step' || kind === 'steer';
    const hasIntents = this.#scope.actor.getSnapshot().context.intents.length > 0;
    return !mayBeBehind || hasIntents || this.#unsavedSteps > this.#policy.maxUnsavedSteps;
  }

  #retryLater(): void {
    const { clock } = this.#scope.kernel.config;
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => {
      const newest = this.#newest;
      if (newest && newest.boundary > this.#landed) void this.#save(newest, { force: true, isRetry: true });
    }, this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  #count(error: unknown): void {
    const { saveErrors, runId, kernel } = this.#scope;
    this.#scope.saveErrors += 1;
    this.#scope.publish({ type: 'checkpoint.failed', error: toErrorData(error) });
    if (saveErrors === 0) kernel.config.warn('run: checkpoint save failed', { runId, error: toErrorData(error) });
  }
}
