import { MAX_UNDELIVERED } from '../src/run/progress.ts';
import type { RunContext, RunEmitted, Steer } from './context.ts';

interface Enqueue {
  readonly assign: (change: Partial<RunContext>) => void;
  readonly emit: (event: RunEmitted) => void;
}

/** Puts messages into the queue for the next turn, and announces it, so that they are stored. */
export function queueSteering(context: RunContext, steers: readonly Steer[], { assign, emit }: Enqueue): void {
  const { isDurable, announced } = context;
  const room = Math.max(0, MAX_UNDELIVERED - context.progress.undelivered.length);
  const taken = steers.slice(0, room);
  const undelivered = [...context.progress.undelivered, ...taken.map(({ message }) => message)];
  const progress = { ...context.progress, undelivered };
  const boundary = isDurable ? announced + 1 : announced;
  assign({ progress, announced: boundary, held: [] });
  for (const { receipt } of taken) emit({ type: 'steer.queued', receipt, boundary });
  for (const { receipt } of steers.slice(room)) emit({ type: 'steer.refused', receipt });
  if (isDurable) emit({ type: 'boundary', boundary, kind: 'steer', force: true, progress });
}
