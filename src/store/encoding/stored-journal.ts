import type { JournalEntry, JournalWrite } from '../../run/journal/entry.ts';
import { jsonText } from '../../values/json.ts';
import { parseStored } from './encode.ts';
import type { Encryption } from './encryption.ts';
import { entriesIn, shortRow } from './journal-text.ts';

/** A text of a journal: the entries that one write added. */
export interface JournalRow {
  /** The place of its last entry: the key of the row, with the run and `isKept`. */
  readonly place: number;
  /** False: it is deleted with the step that it belongs to. */
  readonly isKept: boolean;
  /** With a codec it is encrypted. */
  readonly text: string;
}

/** What a save adds to a journal, as it is stored. */
export interface StoredJournal {
  readonly rows: readonly JournalRow[];
  /** Passing rows up to this place are deleted. */
  readonly dropTo?: number | undefined;
}

/** Returns the part name under which a row of a journal is encrypted. */
const journalText = (place: number): string => `journal ${place}`;

/**
 * Encodes entries of a journal as rows: one for the kept ones, and one for the passing ones.
 * @throws {NOT_JSON} the codec's error
 */
export function journalRows(
  runId: string,
  entries: readonly JournalEntry[],
  encryption: Pick<Encryption, 'seal'>,
): JournalRow[] {
  const rows: JournalRow[] = [];
  for (const isKept of [true, false]) {
    const own = entries.filter(({ keep }) => (keep === 'kept') === isKept);
    const place = own.at(-1)?.place;
    if (place === undefined) continue;
    const text = encryption.seal(jsonText(shortRow(own, place), 'journal'), runId, journalText(place));
    rows.push({ place, isKept, text });
  }
  return rows;
}

/** Encodes what a save adds to a journal; undefined if it adds nothing. */
export function storedJournal(
  runId: string,
  write: JournalWrite | undefined,
  encryption: Pick<Encryption, 'seal'>,
): StoredJournal | undefined {
  if (!write || (write.entries.length === 0 && write.dropTo === undefined)) return undefined;
  const { entries, dropTo } = write;
  return { rows: journalRows(runId, entries, encryption), ...(dropTo === undefined ? {} : { dropTo }) };
}

/**
 * Decodes rows of a journal: the entries after a place, in order. A write that was repeated may be in two rows: its entries come
 * once.
 * @throws {CHECKPOINT_CORRUPT} for a row that is not what was stored
 */
export function entriesOf(
  runId: string,
  rows: readonly JournalRow[],
  { after, encryption }: { readonly after: number; readonly encryption: Pick<Encryption, 'open'> },
): JournalEntry[] {
  const found = new Map<number, JournalEntry>();
  for (const { place, isKept, text } of rows) {
    const row = parseStored(encryption.open(text, runId, journalText(place)), 'journal');
    for (const entry of entriesIn(row, { runId, place, isKept }))
      if (entry.place > after) found.set(entry.place, entry);
  }
  return [...found.values()].sort((a, b) => a.place - b.place);
}
