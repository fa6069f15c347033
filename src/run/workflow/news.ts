import type { Progress } from '../progress.ts';

/**
 * Returns whether there is something that the machine of a workflow must take: its beginning, a result, a timer whose wait is
 * over, or an event.
 */
export function hasNews({ workflow, openStep, waiting }: Pick<Progress, 'workflow' | 'openStep' | 'waiting'>): boolean {
  if (!workflow) return true;
  if (workflow.events.length > 0 || openStep?.calls.some(({ state }) => state === 'done')) return true;
  if (workflow.timers.length === 0) return false;
  const open = new Set(waiting?.waits.map(({ id }) => id));
  return workflow.timers.some(({ waitId }) => !open.has(waitId));
}
