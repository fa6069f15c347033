import type { ActorRefLike, InspectionEvent } from 'xstate';

type Inspected = ActorRefLike & { readonly id?: string; readonly logic?: { readonly config?: unknown } };

/** Collects inspection events, each also as the text that goes over a wire at that moment. */
export function inspector() {
  const events: InspectionEvent[] = [];
  const frames: string[] = [];
  return {
    events,
    frames,
    inspect: (event: InspectionEvent): void => {
      events.push(event);
      frames.push(frameOf(event));
    },
    /** The ids of the actors that were announced, in order. */
    get actors(): string[] {
      return events.filter(({ type }) => type === '@xstate.actor').map(({ actorRef }) => idOf(actorRef));
    },
  };
}

const idOf = (ref: ActorRefLike | undefined): string => (ref as Inspected | undefined)?.id ?? '';

/** What an inspector client sends of an event: names, the chart of a new actor, the event, the snapshot as JSON. */
function frameOf(inspected: InspectionEvent): string {
  const { type, rootId, actorRef } = inspected;
  const ref = actorRef as Inspected & { readonly _parent?: ActorRefLike; getSnapshot(): unknown };
  const frame: Record<string, unknown> = { type, rootId, id: idOf(ref), sessionId: ref.sessionId };
  if ('event' in inspected) frame.event = inspected.event;
  if ('sourceRef' in inspected) frame.source = idOf(inspected.sourceRef);
  if ('snapshot' in inspected) frame.snapshot = inspected.snapshot;
  if ('action' in inspected) frame.action = inspected.action;
  if (type === '@xstate.actor') {
    frame.parent = idOf(ref._parent);
    frame.definition = JSON.stringify(ref.logic?.config, named);
    frame.snapshot = snapshotOf(ref);
  }
  return JSON.stringify(frame, withoutCircles());
}

/** An actor is announced while it is being made; it may have no snapshot yet. */
function snapshotOf(ref: { getSnapshot(): unknown }): unknown {
  try {
    return ref.getSnapshot();
  } catch {
    return undefined;
  }
}

const named = (_: string, value: unknown) => (typeof value === 'function' ? { type: value.name } : value);

/** An object within itself is cut, as the serialisers of inspectors do. */
function withoutCircles(): (this: unknown, key: string, value: unknown) => unknown {
  const ancestors: unknown[] = [];
  return function replace(this: unknown, key: string, value: unknown) {
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (typeof value !== 'object' || value === null) return named(key, value);
    if (ancestors.includes(value)) return '[circular]';
    ancestors.push(value);
    return value;
  };
}

/** All values under a key, wherever in a parsed frame. */
export function found(value: unknown, key: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => (name === key ? [inner] : found(inner, key)));
}

/**
 * Every string that can be reached from a value by its own properties, hidden ones and symbols too, through Maps and Sets,
 * at any depth: more than any serialiser finds.
 */
export function reachable(value: unknown): Set<string> {
  const texts = new Set<string>();
  const seen = new Set<unknown>();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const current = open.pop();
    if (typeof current === 'string') texts.add(current);
    if ((typeof current !== 'object' && typeof current !== 'function') || current === null || seen.has(current))
      continue;
    seen.add(current);
    if (current instanceof Map) open.push(...current.keys(), ...current.values());
    if (current instanceof Set) open.push(...current);
    for (const key of Reflect.ownKeys(current)) {
      texts.add(String(key));
      open.push(read(current, key));
    }
  }
  return texts;
}

function read(value: object, key: PropertyKey): unknown {
  try {
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
}
