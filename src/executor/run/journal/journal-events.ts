import type { RunEvent, RunEventBody } from '../../../run/events/body.ts';
import type { keepOf } from '../../../run/events/table.ts';
import type { TextPlace } from '../../../run/journal/entry.ts';
import { callOf } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';

/** An event on its way to the journal. */
export interface WaitingEvent {
  readonly event: RunEvent;
  readonly keep: 'kept' | 'passing';
  /** The save that it waits for: the next one, or that of its step; undefined = none. */
  readonly save?: 'next' | 'step' | undefined;
  readonly attempt?: number | undefined;
  /** The step that it belongs to; undefined = none. */
  readonly step?: number | undefined;
  /** It belongs to a model call, and is void if that is repeated. */
  readonly isOfCall?: true;
  readonly end?: TextPlace | undefined;
  /** It was given to a save, or is being published, at this place. */
  place?: number;
}

/** The events whose content the message of their step has. */
export const hasContent = new Set<RunEventBody['type']>([
  'step.snapshot',
  'tool.started',
  'tool.done',
  'wait.opened',
  'step.done',
]);

/** Returns the save that an event waits for, by the row of its type; undefined = none. */
export function saveOf(keep: ReturnType<typeof keepOf>): WaitingEvent['save'] {
  return keep === 'with-step' ? 'step' : keep === 'with-save' ? 'next' : undefined;
}

/** Returns the step of an event; undefined = it names none. */
export function stepOfEvent(event: RunEvent): number | undefined {
  if (event.type === 'wait.opened') return event.wait.step;
  return 'step' in event ? event.step : undefined;
}

/** Returns whether a recorded state has what an event reports that waits for a save. */
export function isIn({ event, save, step = 0 }: WaitingEvent, state: Progress): boolean {
  const { iteration, openStep, completedPhases } = state;
  if (event.type === 'phase.done') return completedPhases.length > event.index;
  if (save !== 'step' || step <= iteration) return true;
  if (step !== iteration + 1 || !openStep || event.type === 'step.done') return false;
  return event.type !== 'tool.done' || callOf(openStep, event.callId)?.state === 'done';
}

/** Returns an event as the journal stores it: the owner of a call is that of the last start, and a microsecond is exact enough. */
export function asJournaled(event: RunEvent): RunEvent {
  if (event.type !== 'tool.started' && event.type !== 'tool.done') return event;
  const { owner: _, ...rest } = event;
  return rest.type === 'tool.done' ? { ...rest, ms: Math.round(rest.ms * 1_000) / 1_000 } : rest;
}
