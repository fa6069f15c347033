import type { ActiveRun } from '../run/active-run.ts';

/** Gives the critic of a run time to raise the step limit; the run's progress shows its answer. Never rejects. */
export async function askCritic(_: unknown, run: ActiveRun): Promise<void> {
  await run.resources.monitor?.outOfSteps();
}
