import type { Progress } from '../progress.ts';
import { waitsOf } from '../waits/wait-rules.ts';

/**
 * Returns whether there is something that the machine of a workflow must take: its beginning, a result, a timer whose wait is
 * over, or an event.
 */
export function hasNews(progress: Pick<Progress, 'workflow' | 'openStep' | 'waiting'>): boolean {
  const { workflow, openStep } = progress;
  if (!workflow) return true;
  if (workflow.events.length > 0 || openStep?.calls.some(({ state }) => state === 'done')) return true;
  if (workflow.timers.length === 0) return false;
  const open = new Set(waitsOf(progress).map(({ id }) => id));
  return workflow.timers.some(({ waitId }) => !open.has(waitId));
}
