import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { ShutdownError } from '../../values/errors.ts';
import type { Departure } from '../host/process-signals.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { treeOf } from '../run/slice.ts';
import type { Fleet } from './fleet.ts';

/** What a shutdown ends besides live runs, and how long it may take, ms. */
interface Leaving {
  readonly fleet: Fleet;
  readonly drainMs: number;
}

/** The share of a shutdown's time for calls with effects; the rest is for the last saves. */
const CALLS_SHARE = 0.75;

/**
 * Leaves all live runs for the next boot: each saves its newest state and releases its claim. A running call with effects may
 * end before that, so that its result is recorded: the next process could not know it. Driven runs end their slices: their model
 * calls may end as well.
 * @param drainMs longest time for everything, ms; runs that are not left by then are recovered as after a crash
 * @returns what is left; the driven runs of a worker are the queue's again, and do not count
 */
export async function shutdown(services: ExecutorServices, { fleet, drainMs }: Leaving): Promise<Departure> {
  const drained = fleet.drain(drainMs);
  services.isShutDown = true;
  services.sweep.end();
  services.scheduler?.end();
  services.leftRuns.end();
  const delivered = services.deliveries.end();
  services.feeds.end(new ShutdownError('this executor is shut down: read the events on another host'));
  const activeRuns = services.registry.all();
  const cause = new ShutdownError('the host is shutting down');
  const driven = new Set(activeRuns.filter(({ slice }) => slice).flatMap(treeOf));
  const others = activeRuns.filter((run) => !driven.has(run));
  for (const run of driven) run.slice?.end({ graceMs: drainMs });
  for (const run of others) run.send({ type: 'run.leave', cause: toErrorData(cause) });
  const { clock } = services.config;
  const timer = clock.setTimeout(() => {
    for (const run of others) run.stop(cause);
  }, drainMs * CALLS_SHARE);
  const allEnded = Promise.all([drained, delivered, ...activeRuns.map((run) => run.life.ended.promise)])
    .then(() => services.close())
    .then(() => Promise.all([services.config.hints.settle(), services.config.notices.settle()]));
  try {
    await withDeadline(allEnded, { ms: drainMs, clock, what: 'draining' });
    const results = await Promise.all(others.map((run) => run.life.ended.promise));
    return results.some(({ status }) => status === 'interrupted') ? 'runs' : 'nothing';
  } catch {
    services.config.warn('shutdown.cut', {
      runIds: services.registry.all().map((run) => run.runId),
    });
    return 'trouble';
  } finally {
    clock.clearTimeout(timer);
  }
}
