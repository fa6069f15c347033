import { type OpenCall, positionOf } from '../src/run/open-step.ts';
import { isMadeOf, type Progress } from '../src/run/progress.ts';
import type { RunContext, RunMachineEvent, ToolAnswer } from './context.ts';

/*
 * The names of the actors that call models and tools. Pawl makes them: a call id of the model is not safe as a name. The calls
 * of the next step reuse the same names and replace the ended actors, so no ended actor has to be kept or stopped. XState
 * remembers each event type that it ever saw, and copies a snapshot for each child that it forgets. If an inspector may watch
 * the run, each name includes its step.
 */

/** Returns the id of the actor that calls the model. */
export function modelCallId({ isInspected, progress }: RunContext): string {
  return isInspected ? `model.${progress.iteration + 1}` : 'model';
}

/** Returns the id of the actor that runs a tool call, by the call's place. */
export function toolCallId(
  { isInspected, places }: Pick<RunContext, 'isInspected' | 'places'>,
  { iteration, openStep }: Pick<Progress, 'iteration' | 'openStep'>,
  callId: string,
): string {
  if (!isInspected || !openStep) return `tool.${places.indexOf(callId)}`;
  return `tool.${iteration + 1}.${positionOf(openStep, callId)}`;
}

/** Returns the id of the open call that an answer is for; undefined if it names none by the id of the model's turn. */
export function answeredCallId(
  { openStep }: Pick<Progress, 'openStep'>,
  { callId, isOfTurn }: Pick<ToolAnswer, 'callId' | 'isOfTurn'>,
): string | undefined {
  if (!isOfTurn) return callId;
  const open = (openStep?.calls ?? []).filter(({ state }) => state !== 'done').map((call) => call.callId);
  return open.find((id) => id === callId) ?? open.find((id) => isMadeOf(id, callId));
}

/**
 * Gives each tool call that starts a place, which names its actor. Each call gets the first free place: a message may have
 * many more calls than run at once.
 */
export function withPlaces(places: RunContext['places'], calls: readonly OpenCall[]): RunContext['places'] {
  const taken = [...places];
  let from = 0;
  for (const { callId } of calls) {
    while (taken[from] !== undefined) from += 1;
    taken[from] = callId;
  }
  return taken;
}

/** Frees the place of a tool call that has answered. */
export function withoutPlace(places: RunContext['places'], callId: string): RunContext['places'] {
  const place = places.indexOf(callId);
  return place === -1 ? places : places.with(place, undefined);
}

/**
 * Removes the ended actor of a model or tool call in an inspected run: actors named after their steps would stay forever.
 * It is removed when its answer is processed.
 */
export function forgetNamed(
  context: RunContext,
  event: RunMachineEvent,
  enqueue: { readonly stopChild: (id: string) => void },
): void {
  if (!context.isInspected) return;
  if (context.reply) enqueue.stopChild(modelCallId(context));
  else if ('actorId' in event) enqueue.stopChild(event.actorId);
}
