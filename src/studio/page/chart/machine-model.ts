// Where the machine of a workflow is, and was: pure.
import type { JournalEvent, JsonValue } from '../../wire.ts';

/** What the events of a workflow say of its machine. */
export interface MachineFacts {
  /** How often each state was entered, by its path: `open.asked`. */
  readonly visits: Readonly<Record<string, number>>;
  /** The transition that was taken last. */
  readonly last?: { readonly from: string; readonly to: string; readonly event: string };
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

/** Returns the value of a state in a few words: its innermost states. */
export function stateWords(value: JsonValue): string {
  const paths = activePaths(value);
  return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}.`))).join(', ');
}

/** Returns the facts after one more event. */
export function afterTransition(facts: MachineFacts, event: JournalEvent): MachineFacts {
  if (event.type !== 'workflow.transition') return facts;
  const before = new Set(activePaths(event.from));
  const visits: Record<string, number> = { ...facts.visits };
  for (const path of activePaths(event.to)) if (!before.has(path)) visits[path] = (visits[path] ?? 0) + 1;
  return { visits, last: { from: stateWords(event.from), to: stateWords(event.to), event: event.event } };
}
