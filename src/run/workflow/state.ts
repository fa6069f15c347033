import { hasTexts, isObject, type JsonObject } from '../../values/json.ts';
import type { FieldRedactor } from '../../values/redact.ts';

/** A timer of a workflow: the wait of the same id has its time. It is due once that wait is over. */
interface WorkflowTimer {
  readonly waitId: string;
  /** The id under which the machine may cancel it, or set it again. */
  readonly sendId: string;
  readonly event: JsonObject;
}

/** A machine event that was sent to a workflow, and that its machine has not taken yet. */
interface SentEvent {
  /** Sent twice with the same id, it counts once. */
  readonly id: string;
  readonly event: JsonObject;
}

/** What the record of a workflow has besides its open calls and waits. */
export interface WorkflowState {
  /** XState's persisted snapshot of the machine. Of its children only `src` is kept. */
  readonly snapshot: JsonObject;
  /** A hash of the structure of the machine that made the snapshot. */
  readonly hash: string;
  /** The open calls by the ids of their actors: a result belongs to one start of a call. */
  readonly calls: { readonly [actorId: string]: string };
  readonly timers: readonly WorkflowTimer[];
  readonly events: readonly SentEvent[];
  /** The ids of the last events that were taken. */
  readonly seen: readonly string[];
}

/** Returns whether a stored value is the state of a workflow. */
export function isWorkflowState(value: unknown): boolean {
  if (!hasTexts(value, ['hash']) || !isObject(value.snapshot) || !isObject(value.calls)) return false;
  const { calls, timers, events, seen } = value;
  return (
    Object.values(calls as object).every((callId) => typeof callId === 'string') &&
    Array.isArray(timers) &&
    timers.every((timer) => hasTexts(timer, ['waitId', 'sendId']) && isObject(timer.event)) &&
    Array.isArray(events) &&
    events.every((sent) => hasTexts(sent, ['id']) && isObject(sent.event)) &&
    Array.isArray(seen) &&
    seen.every((id) => typeof id === 'string')
  );
}

/**
 * Returns the state of a workflow without its secrets. Types of events and names of states are the host's own: they stay.
 */
export function redactWorkflow(state: WorkflowState, by: FieldRedactor): WorkflowState {
  return by.once(state, ({ snapshot, timers, events, ...rest }) => ({
    ...rest,
    snapshot: by.json(snapshot) as JsonObject,
    timers: timers.map((timer) => ({ ...timer, event: by.json(timer.event) as JsonObject })),
    events: events.map((sent) => ({ ...sent, event: by.json(sent.event) as JsonObject })),
  }));
}
