// Where the machine of a workflow is, and was: pure.
import type { DrawnState } from '../../machine/wire.ts';
import type { JournalEvent, JsonValue } from '../../wire.ts';

/** What the events of a workflow say of its machine. */
export interface MachineFacts {
  /** How often each state was entered, by its path: `open.asked`. */
  readonly visits: Readonly<Record<string, number>>;
  /** The value of its state after the last transition. */
  readonly at?: JsonValue;
  /** The transition that was taken last; `took`: the ids of the machine's transitions. */
  readonly last?: {
    readonly from: string;
    readonly to: string;
    readonly event: string;
    readonly took: readonly string[];
  };
}

/** A machine before its first transition. */
export const unmoved: MachineFacts = { visits: {} };

/** Returns the paths of all states that a value names, the outer ones first. */
export function activePaths(value: JsonValue, above = ''): readonly string[] {
  if (typeof value === 'string') return [above + value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    above + key,
    ...activePaths(inner as JsonValue, `${above}${key}.`),
  ]);
}

/** Returns those of some paths that have no other one in them. */
export function innermost(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}.`)));
}

/** Returns the value of a state in a few words: its innermost states. */
export function stateWords(value: JsonValue): string {
  return innermost(activePaths(value)).join(', ');
}

/** Returns what a machine takes, in a few words: XState's own names of results and timers without what is the same in all. */
export function eventWords(event: string): string {
  return event
    .replace(/^xstate\.(done|error)\.(actor|state)\./, (_, how) => `${how === 'done' ? 'done' : 'failed'}: `)
    .replace(/^xstate\./, '');
}

/** Returns the facts after one more event. */
export function afterTransition(facts: MachineFacts, event: JournalEvent): MachineFacts {
  if (event.type !== 'workflow.transition') return facts;
  const before = new Set(activePaths(event.from));
  const visits: Record<string, number> = { ...facts.visits };
  for (const path of activePaths(event.to)) if (!before.has(path)) visits[path] = (visits[path] ?? 0) + 1;
  const { from, to, took = [] } = event;
  return { visits, at: to, last: { from: stateWords(from), to: stateWords(to), event: event.event, took } };
}

/** Returns the middle of the first of some states that is in a drawing. */
export function middleOf(
  states: readonly DrawnState[],
  paths: readonly string[],
): readonly [x: number, y: number] | undefined {
  const [x, y, width, height] = states.find(({ path }) => path === paths[0])?.box ?? [];
  return x === undefined || y === undefined ? undefined : [x + (width ?? 0) / 2, y + (height ?? 0) / 2];
}
