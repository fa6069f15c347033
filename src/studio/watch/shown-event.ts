import type { JournalEvent } from '../wire.ts';

/** The longest JSON of an event that is sent whole, in UTF-16 units. */
const EVENT_CHARS = 65_536;
/** The beginning of a long text that is sent, in UTF-16 units. */
const BEGINNING = 16_384;

/** An event as it is sent, and the names of the fields that were too long. */
export interface ShownEvent {
  readonly event: JournalEvent;
  readonly cut?: readonly string[];
}

/** Returns an event without its long values: they are at `GET /runs/:id/value`. */
export function shownEvent(event: JournalEvent): ShownEvent {
  if (JSON.stringify(event).length <= EVENT_CHARS) return { event };
  const cut: string[] = [];
  const fields = Object.entries(event).map(([name, value]) => {
    const json = JSON.stringify(value) ?? '';
    if (json.length <= BEGINNING) return [name, value];
    cut.push(name);
    return [name, shortened(name, value)];
  });
  return { event: Object.fromEntries(fields) as JournalEvent, cut };
}

/** Something of the same form: readers find there what they expect. */
function shortened(name: string, value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, BEGINNING).toWellFormed();
  if (name === 'output') return { type: 'text', value: '' };
  if (name === 'error') return { ...(value as object), message: '', cause: undefined };
  if (Array.isArray(value)) return [];
  return name === 'wait' ? { ...(value as object), input: undefined, detail: undefined, schema: undefined } : null;
}
