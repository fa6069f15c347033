import { task } from '../../../machines/task.ts';
import type { Kernel } from '../run/active-run.ts';
import { scopeOf } from '../run/active-run.ts';

/** Gives the critic time to raise the step limit; whether it did is in the run's progress. It never rejects. */
export function askCriticActor(kernel: Kernel) {
  return task<void>(async ({ self }) => {
    await scopeOf(kernel, self).supervision?.outOfSteps();
  });
}
