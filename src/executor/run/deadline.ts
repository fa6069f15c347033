import { readProperty, toErrorData } from '../../values/error-data.ts';
import { DeadlineExceededError } from '../../values/errors.ts';
import { letGo } from '../../values/thenable.ts';
import type { RunScope } from './active-run.ts';

/** Stops the run when its working time is used up. @param leftMs what earlier processes left of it, ms */
export function startDeadline(scope: RunScope, leftMs: number): void {
  const { clock } = scope.kernel.config;
  const timer = clock.setTimeout(
    () => {
      scope.stop(new DeadlineExceededError(`run ${scope.runId} used up its maxRuntimeMs`));
    },
    Math.max(0, leftMs),
  );
  scope.onEnd(() => clock.clearTimeout(timer));
}

/** Lets the caller's signal stop the run, and forgets the signal when the run is over. */
export function followSignal(
  scope: RunScope,
  signal: AbortSignal | undefined,
  cancelled: (reason: unknown) => unknown,
): void {
  if (!signal) return;
  const stop = () => scope.stop(cancelled(readProperty(signal, 'reason')));
  try {
    if (signal.aborted) stop();
    else letGo(signal.addEventListener('abort', stop, { once: true }));
  } catch (error) {
    scope.kernel.config.warn('run: the signal cannot be followed', { runId: scope.runId, error: toErrorData(error) });
  }
  scope.onEnd(() => letGo(signal.removeEventListener('abort', stop)));
}
