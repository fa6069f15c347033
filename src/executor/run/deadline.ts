import { readProperty, toErrorData } from '../../values/error-data.ts';
import { DeadlineExceededError } from '../../values/errors.ts';
import { letGo } from '../../values/thenable.ts';
import type { ActiveRun } from './active-run.ts';

/** Stops the run when its working time is used up. @param leftMs the rest after earlier processes, ms */
export function startDeadline(run: ActiveRun, leftMs: number): void {
  const { clock } = run.services.config;
  const timer = clock.setTimeout(
    () => {
      run.stop(new DeadlineExceededError(`run ${run.runId} used up its maxRuntimeMs`));
    },
    Math.max(0, leftMs),
  );
  run.onEnd(() => clock.clearTimeout(timer));
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
    run.services.config.warn('run: the signal cannot be followed', { runId: run.runId, error: toErrorData(error) });
  }
  run.onEnd(() => letGo(signal.removeEventListener('abort', stop)));
}
