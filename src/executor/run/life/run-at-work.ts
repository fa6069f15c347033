import type { ActiveRun, ExecutorServices } from '../active-run.ts';

/**
 * Returns the run of this id on which this process works. Starts, ends, and runs on their way to the store are waited for: what
 * comes of them decides.
 * @returns undefined: the store knows more
 */
export async function runAtWork({ registry }: ExecutorServices, runId: string): Promise<ActiveRun | undefined> {
  for (let live = registry.live(runId); live; live = registry.live(runId)) {
    if (await isAtWork(live)) return live;
    await live.life.ended.promise;
  }
  return undefined;
}

/** Until a start has resolved, it is unknown which request its run has: what a refused start takes is lost. */
async function isAtWork({ life }: ActiveRun): Promise<boolean> {
  await life.accepted.promise;
  await life.leaving;
  return life.isAtWork;
}
