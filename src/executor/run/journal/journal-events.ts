import type { RunEvent, RunEventBody } from '../../../run/events.ts';
import type { TextPlace } from '../../../run/journal/entry.ts';
import { callOf } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';

/** An event on its way to the journal. */
export interface Waiting {
  readonly event: RunEvent;
  readonly keep: 'kept' | 'passing';
  readonly attempt?: number | undefined;
  /** The step that it belongs to; undefined = none. */
  readonly step?: number | undefined;
  /** It belongs to a model call, and is void if that is repeated. */
  readonly isOfCall?: true;
  readonly end?: TextPlace | undefined;
  /** It was given to a save, or is being published, at this place. */
  place?: number;
}

/** The kept events that report what a save records, and wait for it. Every other kept event is published after its save. */
export const recorded = new Set<RunEventBody['type']>([
  'model.source',
  'step.snapshot',
  'tool.done',
  'step.done',
  'phase.started',
  'phase.done',
  'steer.applied',
  'run.left',
]);

/** Events of a step after its model call. */
export const isOfStep = new Set<RunEventBody['type']>([
  'tool.started',
  'tool.done',
  'tool.progress',
  'wait.opened',
  'step.done',
]);

/** The events of a model call: a second attempt voids them. */
export const ofCall = new Set<RunEventBody['type']>([
  'step.started',
  'model.delta',
  'model.file',
  'model.source',
  'model.retry',
  'tool.input',
  'step.reset',
]);

/** The events whose content the message of their step has. */
export const hasContent = new Set<RunEventBody['type']>([
  'step.snapshot',
  'tool.started',
  'tool.done',
  'wait.opened',
  'step.done',
]);

/** Returns the step of an event; undefined = it names none. */
export function stepOf(event: RunEvent): number | undefined {
  if (event.type === 'wait.opened') return event.wait.step;
  return 'step' in event ? event.step : undefined;
}

/** They report nothing of a step: the next save has them. */
const ofAnySave = new Set<RunEventBody['type']>(['phase.started', 'steer.applied', 'run.left']);

/** Returns whether a recorded state has what an event reports that waits for a save. */
export function isIn({ event, step = 0 }: Waiting, state: Progress): boolean {
  const { iteration, openStep, completedPhases } = state;
  if (event.type === 'phase.done') return completedPhases.length > event.index;
  if (!recorded.has(event.type) || ofAnySave.has(event.type)) return true;
  if (step <= iteration) return true;
  if (step !== iteration + 1 || !openStep || event.type === 'step.done') return false;
  return event.type !== 'tool.done' || callOf(openStep, event.callId)?.state === 'done';
}

/** Returns an event as the journal stores it: the owner of a call is that of the last start, and a microsecond is exact enough. */
export function asJournaled(event: RunEvent): RunEvent {
  if (event.type !== 'tool.started' && event.type !== 'tool.done') return event;
  const { owner: _, ...rest } = event;
  return rest.type === 'tool.done' ? { ...rest, ms: Math.round(rest.ms * 1_000) / 1_000 } : rest;
}
