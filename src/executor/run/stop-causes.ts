import { readProperty } from '../../values/error-data.ts';
import { DeadlineExceededError } from '../../values/errors.ts';
import { letGo } from '../../values/thenable.ts';
import type { ActiveRun } from './active-run.ts';

/** The end of a run's working time. It stands still while the run only waits. */
export class Deadline {
  readonly #run: ActiveRun;
  #leftMs: number;
  #since = 0;
  #timer: unknown;

  /** @param leftMs the rest after earlier processes, ms */
  constructor(run: ActiveRun, leftMs: number) {
    this.#run = run;
    this.#leftMs = leftMs;
    this.resume();
  }

  pause(): void {
    if (this.#timer === undefined) return;
    const { clock } = this.#run.services.config;
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= clock.monotonic() - this.#since;
  }

  resume(): void {
    if (this.#timer !== undefined || this.#run.life.isOver) return;
    const { clock } = this.#run.services.config;
    this.#since = clock.monotonic();
    this.#timer = clock.setTimeout(
      () => {
        this.#run.stop(new DeadlineExceededError(`run ${this.#run.runId} used up its maxRuntimeMs`));
      },
      Math.max(0, this.#leftMs),
    );
  }
}

/** Stops the run when the caller's signal is aborted, and removes the listener at the end of the run. */
export function followSignal(
  run: ActiveRun,
  signal: AbortSignal | undefined,
  cancelled: (reason: unknown) => unknown,
): void {
  if (!signal) return;
  const stop = () => run.stop(cancelled(readProperty(signal, 'reason')));
  try {
    if (signal.aborted) stop();
    else letGo(signal.addEventListener('abort', stop, { once: true }));
  } catch (error) {
    run.services.config.warn('abort-signal.unreadable', { runId: run.runId, error });
  }
  run.onEnd(() => letGo(signal.removeEventListener('abort', stop)));
}
