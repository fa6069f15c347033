import { withDeadline } from '../run/deadline.ts';
import { ShutdownError } from '../run/errors.ts';
import type { Kernel } from './scope.ts';

/**
 * Leaves all live runs for the next boot: each flushes its newest state and gives up its claim.
 * @param drainMs longest time that may take, ms; what is not done by then is recovered like after a crash
 */
export async function shutdown(kernel: Kernel, drainMs: number): Promise<void> {
  kernel.isShutDown = true;
  const scopes = kernel.registry.all();
  for (const scope of scopes) scope.stop(new ShutdownError('the host is shutting down'));
  const allEnded = Promise.all(scopes.map((scope) => scope.ended.promise)).then(() => Promise.all(kernel.closing));
  try {
    await withDeadline(allEnded, { ms: drainMs, clock: kernel.config.clock, what: 'draining' });
  } catch {
    kernel.config.warn('executor: shutdown ended before all runs were left in good order', {
      runIds: kernel.registry.all().map((scope) => scope.runId),
    });
  }
}
