import { change } from '../src/run/change.ts';
import type { Message } from '../src/run/message.ts';
import { MAX_UNDELIVERED, type Progress } from '../src/run/progress.ts';
import type { RunContext, Steer } from './context.ts';
import type { Enqueue } from './tool-calls.ts';

/** Puts messages into the queue for the next turn, and announces it, so that they are stored. */
export function queueSteering(context: RunContext, steers: readonly Steer[], enqueue: Enqueue): void {
  const { progress } = context;
  const room = Math.max(0, MAX_UNDELIVERED - progress.undelivered.length);
  const taken = steers.slice(0, room);
  const told = change(progress, ({ undelivered, commands }) => {
    undelivered.push(...taken.map(({ message }) => message));
    commands.push(...taken.flatMap(({ command }) => command ?? []));
  });
  const boundary = announce(context, told, enqueue);
  for (const { receipt } of taken) enqueue.emit({ type: 'steer.queued', receipt, boundary });
  for (const { receipt } of steers.slice(room)) enqueue.emit({ type: 'steer.refused', receipt });
}

/** What the critic says waits as well; of too much the rest is dropped. */
export function queueNudge(context: RunContext, message: Message, enqueue: Enqueue): void {
  const { progress } = context;
  if (progress.nudges.length >= MAX_UNDELIVERED) return;
  const told = change(progress, ({ nudges }) => void nudges.push(message));
  announce(context, told, enqueue);
}

/** What came while the run was resolving, now that its record is in hand. */
export function queueHeld(context: RunContext, enqueue: Enqueue): void {
  const { held, heldNudges, heldSteps, progress } = context;
  if (held.length === 0 && heldNudges.length === 0 && heldSteps === 0) return;
  const room = Math.max(0, MAX_UNDELIVERED - progress.nudges.length);
  const told = change(progress, (draft) => {
    draft.nudges.push(...heldNudges.slice(0, room));
    draft.raisedSteps += heldSteps;
  });
  queueSteering({ ...context, progress: told }, held, enqueue);
  enqueue.assign({ held: [], heldNudges: [], heldSteps: 0 });
}

/** A run whose children get on is not stuck, however often its process dies meanwhile. */
export function countProgress(context: RunContext, enqueue: Enqueue): void {
  if (context.progress.attempts > 0) announce(context, { ...context.progress, attempts: 0 }, enqueue);
}

function announce(context: RunContext, progress: Progress, { assign, emit }: Enqueue): number {
  const { isDurable, announced } = context;
  const boundary = isDurable ? announced + 1 : announced;
  assign({ progress, announced: boundary });
  if (isDurable) emit({ type: 'boundary', boundary, kind: 'steer', force: true, progress });
  return boundary;
}
