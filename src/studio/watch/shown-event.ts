import { ownerName } from '../../store/owner.ts';
import { charsIn } from '../../values/json.ts';
import type { JournalEvent } from '../wire.ts';

/** The longest JSON of an event that is sent whole, in UTF-16 units. */
const EVENT_CHARS = 65_536;
/** The beginning of a long text that is sent, in UTF-16 units. */
const BEGINNING = 16_384;
/** The longest output of a call that is sent: a timeline shows none, and what is selected reads the whole one. */
const OUTPUT_CHARS = 512;

/** An event as it is sent, and the names of the fields that were too long. */
interface ShownEvent {
  readonly event: JournalEvent;
  readonly cut?: readonly string[];
}

/** Returns an event without its long values: they are at `GET /runs/:id/value`. Its process is named as a person names it. */
export function shownEvent(given: JournalEvent): ShownEvent {
  const event =
    'owner' in given && typeof given.owner === 'string' ? { ...given, owner: ownerName(given.owner) } : given;
  if (event.type === 'tool.done' && isLongOutput(event.output))
    return { event: { ...event, output: shortened('output', event.output) } as JournalEvent, cut: ['output'] };
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

function isLongOutput(output: unknown): boolean {
  // The estimate is less than four times the length: an output of megabytes is not made a text for its length alone.
  return charsIn(output, 4 * OUTPUT_CHARS) > 4 * OUTPUT_CHARS || JSON.stringify(output).length > OUTPUT_CHARS;
}

/** Something of the same form: readers find there what they expect. */
function shortened(name: string, value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, BEGINNING).toWellFormed();
  // Its kind says whether the call failed.
  if (name === 'output') return { type: (value as { readonly type: string }).type, value: '' };
  if (name === 'error') return { ...(value as object), message: '', cause: undefined };
  if (Array.isArray(value)) return [];
  return name === 'wait' ? { ...(value as object), input: undefined, detail: undefined, schema: undefined } : null;
}
