import { task } from '../../../machines/task.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { runOf } from '../run/active-run.ts';

/** Gives the critic time to raise the step limit; whether it did is in the run's progress. It never rejects. */
export function askCriticActor(services: ExecutorServices) {
  return task<void>(async ({ self }) => {
    await runOf(services, self).monitor?.outOfSteps();
  });
}
