import { toErrorData } from '../../values/error-data.ts';
import { WorkflowStateError } from '../../values/errors.ts';
import { frozenJson, hasTexts, isAmount, isObject, type JsonObject, type JsonValue } from '../../values/json.ts';
import type { FieldRedactor } from '../../values/redact.ts';

/** The run that gets an event of another run. */
export interface MessageReceiver {
  readonly runId: string;
  /** The call that began it; absent = it is the parent. */
  readonly callId?: string;
}

/** An event for another run: it is sent once the transition that sent it is stored, and again after a crash. */
export interface WorkflowMessage {
  /** Names the event for its receiver. */
  readonly id: string;
  readonly to: MessageReceiver;
  readonly event: JsonObject;
}

/** A machine event, as it waits until its machine takes it. */
export interface EnteredEvent {
  readonly id: string;
  readonly event: JsonObject;
  /** When it was sent, wall clock, ms; absent = another run, or the machine itself, has sent it. */
  readonly at?: number;
}

/** What the record of a workflow has besides its open calls and waits. */
export interface WorkflowState {
  /** XState's persisted snapshot of the machine. Of its children only `src` is kept. */
  readonly snapshot: JsonObject;
  /** A hash of the structure of the machine that made the snapshot. */
  readonly hash: string;
  /** The open calls by the ids of their actors: a result belongs to one start of a call. */
  readonly calls: { readonly [actorId: string]: string };
  /**
   * Its timers, by their time: each is due once the wait of its id is over. `sendId`: under it the machine cancels it, or sets it again. `to`: the run
   * that then gets the event; absent = the machine itself.
   */
  readonly timers: readonly {
    readonly waitId: string;
    readonly sendId: string;
    /** Wall clock, ms. */
    readonly dueAt: number;
    readonly event: JsonObject;
    readonly to?: MessageReceiver;
  }[];
  /** The ids of the timers that the active states began with, also of those that have fired. */
  readonly armed: readonly string[];
  /** Its migration has changed its states: what they begin has not begun. */
  readonly isMigrated?: true;
  /** Machine events that its machine has not taken yet. Sent twice with the same id, one counts once. */
  readonly events: readonly EnteredEvent[];
  /** Events for other runs that are not known to have arrived; absent = none. */
  readonly outbox?: readonly WorkflowMessage[];
  /** The last events that came: the first characters of the SHA-256 of each id, one after the other. */
  readonly seen: string;
}

/** Returns timers by their time: several may be due at once, after a time without a process. */
export function byTime(timers: WorkflowState['timers']): WorkflowState['timers'] {
  return timers.toSorted((one, other) => one.dueAt - other.dueAt);
}

/** Returns what a machine was given, or gives, as a record holds it. @throws {WORKFLOW_STATE} with the path of what no record can hold */
export function stateJson(value: unknown, path: string): JsonValue {
  try {
    return frozenJson(value, path);
  } catch (error) {
    throw new WorkflowStateError(toErrorData(error).message, { cause: error });
  }
}

/** Most transitions of a run. */
export const MAX_TRANSITIONS = 100_000;

/** Characters of a remembered id: 48 bits. Beside 1,000 of them one new id in 280 thousand million is taken for another by chance. */
export const MARK_CHARS = 8;

/** Returns the value of a state as the paths of its innermost states. @example statePaths({ a: 'b', c: {} }) // ['a.b', 'c'] */
export function statePaths(value: JsonValue): readonly string[] {
  if (!isObject(value)) return typeof value === 'string' ? [value] : [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const below = statePaths(inner as JsonValue);
    return below.length === 0 ? [key] : below.map((path) => `${key}.${path}`);
  });
}

/**
 * Says where a workflow is that has no open call and no timer, and what continues it.
 * @param takes the types of events that its state takes; absent = not known
 */
export function restText(value: JsonValue, takes: readonly string[] | undefined): string {
  const states = statePaths(value).join(', ');
  const where = `it ${states === '' ? 'has no states,' : `is in state ${states}, with`} no call and no timer`;
  if (takes?.length === 0) return `${where}, and no event leads out of it: it can only be cancelled or migrated`;
  return `${where}: it continues with an event${takes ? ` (${takes.join(', ')})` : ''}`;
}

/** Returns whether a stored value is the state of a workflow. */
export function isWorkflowState(value: unknown): boolean {
  if (!hasTexts(value, ['hash', 'seen']) || !isObject(value.snapshot) || !isObject(value.calls)) return false;
  const { calls, timers, armed, events, outbox = [] } = value;
  return (
    Object.values(calls as object).every((callId) => typeof callId === 'string') &&
    Array.isArray(timers) &&
    timers.every(
      (timer) =>
        hasTexts(timer, ['waitId', 'sendId']) && isAmount(timer.dueAt) && isObject(timer.event) && isReceiver(timer.to),
    ) &&
    Array.isArray(outbox) &&
    outbox.every((sent) => hasTexts(sent, ['id']) && isObject(sent.event) && sent.to && isReceiver(sent.to)) &&
    Array.isArray(events) &&
    events.every(
      (sent) => hasTexts(sent, ['id']) && isObject(sent.event) && (sent.at === undefined || isAmount(sent.at)),
    ) &&
    Array.isArray(armed) &&
    armed.every((id) => typeof id === 'string')
  );
}

function isReceiver(to: unknown): boolean {
  return to === undefined || (hasTexts(to, ['runId']) && (to.callId === undefined || typeof to.callId === 'string'));
}

/**
 * Returns the state of a workflow without its secrets. Types of events and names of states are the host's own: they stay.
 */
export function redactWorkflow(state: WorkflowState, by: FieldRedactor): WorkflowState {
  return by.once(state, ({ snapshot, timers, events, outbox, ...rest }) => ({
    ...rest,
    ...(outbox ? { outbox: outbox.map((sent) => ({ ...sent, event: by.json(sent.event) as JsonObject })) } : {}),
    snapshot: by.json(snapshot) as JsonObject,
    timers: timers.map((timer) => ({ ...timer, event: by.json(timer.event) as JsonObject })),
    events: events.map((sent) => ({ ...sent, event: by.json(sent.event) as JsonObject })),
  }));
}
