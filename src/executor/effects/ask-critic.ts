import type { ActiveRun } from '../run/active-run.ts';

/** Gives the critic time to raise the step limit; whether it did is in the run's progress. It never rejects. */
export async function askCritic(_: unknown, run: ActiveRun): Promise<void> {
  await run.resources.monitor?.outOfSteps();
}
