import type { Progress } from '../src/run/progress.ts';
import type { RunContext, RunMachineEvent } from './context.ts';

/*
 * The names of the actors that call models and tools. They are ours: what a model calls its calls is not to be trusted with a
 * name. The calls of the next step have the same ones and take the places of these, so that what has ended is not kept, nor
 * has to be stopped: XState remembers each event type that it ever saw, and copies a snapshot for each child that it forgets.
 * Where somebody looks on they are told apart all the same, by their step.
 */

export function modelCallId({ isInspected, progress }: RunContext): string {
  return isInspected ? `model.${progress.iteration + 1}` : 'model';
}

/** @param position of the call in its message */
export function toolCallId(
  { isInspected }: Pick<RunContext, 'isInspected'>,
  { iteration }: Pick<Progress, 'iteration'>,
  position: number,
): string {
  return isInspected ? `tool.${iteration + 1}.${position}` : `tool.${position}`;
}

/** What was named after its step would be kept for ever: it is let go when what it said is acted upon. */
export function forgetNamed(
  context: RunContext,
  event: RunMachineEvent,
  enqueue: { readonly stopChild: (id: string) => void },
): void {
  if (!context.isInspected) return;
  if (context.reply) enqueue.stopChild(modelCallId(context));
  else if ('actorId' in event) enqueue.stopChild(event.actorId);
}
