import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { ShutdownError } from '../../values/errors.ts';
import type { Kernel } from '../run/active-run.ts';

/** Of the time that a shutdown may take, calls with effects get this share; the rest is for the last saves. */
const CALLS_SHARE = 0.75;

/**
 * Leaves all live runs for the next boot: each flushes its newest state and gives up its claim. A call with effects that is
 * under way may end before that, so that its result is recorded: the next process would not know what became of it.
 * @param drainMs longest time that all of it may take, ms; what is not done by then is recovered like after a crash
 * @returns whether all of it was done by then
 */
export async function shutdown(kernel: Kernel, drainMs: number): Promise<boolean> {
  kernel.isShutDown = true;
  const scopes = kernel.registry.all();
  const cause = new ShutdownError('the host is shutting down');
  for (const scope of scopes) scope.send({ type: 'run.leave', cause: toErrorData(cause) });
  const { clock } = kernel.config;
  const timer = clock.setTimeout(() => {
    for (const scope of scopes) scope.stop(cause);
  }, drainMs * CALLS_SHARE);
  const allEnded = Promise.all(scopes.map((scope) => scope.ended.promise)).then(() => Promise.all(kernel.closing));
  try {
    await withDeadline(allEnded, { ms: drainMs, clock, what: 'draining' });
    return true;
  } catch {
    kernel.config.warn('executor: shutdown ended before all runs were left in good order', {
      runIds: kernel.registry.all().map((scope) => scope.runId),
    });
    return false;
  } finally {
    clock.clearTimeout(timer);
  }
}
