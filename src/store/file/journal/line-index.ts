import type { FileStamp, OpenFile } from '../../../files/file-system.ts';
import { decodeLine, type Line, type RawLine, readLines } from '../../../files/lines.ts';
import { CheckpointCorruptError } from '../../../values/errors.ts';
import { namesIn } from '../../encoding/piece-refs.ts';
import type { JournalRow } from '../../encoding/stored-journal.ts';
import { eventsPlace, intactLine, type State, toNumber, toState } from './lines.ts';

/** The place of a line, in bytes. */
export interface LinePlace {
  readonly at: number;
  /** Bytes. */
  readonly length: number;
}

/** A row of events, by its place in the run's journal of events. */
export interface EventsPlace extends LinePlace {
  readonly place: number;
}

interface MessagesPlace extends LinePlace {
  /** The index of the first message. */
  readonly first: number;
}

/** More than the kind and the first field of a line. */
const BEGINNING = 96;

/** The kind and the first field of a line, without its checksum. */
function beginningOf({ bytes }: RawLine): readonly [kind: string, first: string] {
  const [, kind = '', first = ''] = bytes
    .toString('latin1', 0, Math.min(bytes.length, BEGINNING))
    .trimEnd()
    .split('\t');
  return [kind, first];
}

/**
 * The places of the lines of a run's journal, up to its last commit. It grows with the file: a reader that comes again reads only
 * what is new. Checksums are verified when a line is read.
 */
export class JournalIndex {
  #identity = '';
  #size = -1;
  #end = 0;
  /** The first bytes of the last state: another one there means that a commit was taken back. */
  #mark = Buffer.alloc(0);
  #stateAt = -1;
  #messageCount = 0;
  #messages: MessagesPlace[] = [];
  #pieces = new Map<string, LinePlace>();
  /** The kept events, in the order of their places. */
  #events: EventsPlace[] = [];
  #state: State | undefined;

  /** The state at the last commit. */
  get state(): State | undefined {
    return this.#state;
  }

  /** Returns whether the index is that of a file as it is now. */
  fits({ identity, size }: FileStamp): boolean {
    return identity === this.#identity && size === this.#size;
  }

  /** Reads what is new. @throws {CheckpointCorruptError} */
  async update(file: OpenFile): Promise<void> {
    const stamp = await file.stamp();
    if (this.fits(stamp)) return;
    if (stamp.identity !== this.#identity || stamp.size < this.#end || !(await this.#isSame(file))) this.#clear();
    this.#identity = stamp.identity;
    this.#size = -1;
    const uncommitted: (() => void)[] = [];
    let last: RawLine | undefined;
    for await (const { lines } of readLines(file, this.#end)) {
      for (const raw of lines) {
        const [kind, first] = beginningOf(raw);
        if (kind !== 'state') uncommitted.push(() => this.#note(kind, first, raw));
        else {
          for (const note of uncommitted.splice(0)) note();
          this.#end = raw.at + raw.bytes.length;
          last = raw;
        }
      }
    }
    if (last) {
      this.#state = toState(intactLine(last));
      this.#stateAt = last.at;
      this.#mark = Buffer.from(last.bytes.subarray(0, BEGINNING));
    }
    this.#size = stamp.size;
  }

  /** The rows of kept events after a place, in order. */
  eventsAfter(place: number): readonly EventsPlace[] {
    return this.#events.slice(this.#events.findLastIndex((row) => row.place <= place) + 1);
  }

  /** The rows that hold messages `from` to `to` (excluded). */
  messagesIn(from: number, to: number): readonly MessagesPlace[] {
    const begin = this.#messages.findLastIndex(({ first }) => first <= from);
    return this.#messages.slice(Math.max(0, begin)).filter(({ first }) => first < to);
  }

  /** Reads the pieces that a text names, and those that these name. @throws {CheckpointCorruptError} */
  async pieces(file: OpenFile, text: string): Promise<ReadonlyMap<string, { readonly stored: string }>> {
    const found = new Map<string, { readonly stored: string }>();
    const named = new Set(namesIn(text));
    // Iterating over a growing set also visits the members added meanwhile.
    for (const name of named) {
      const place = this.#pieces.get(name);
      if (!place) continue;
      const [, stored = ''] = (await lineAt(file, place)).fields;
      found.set(name, { stored });
      for (const inner of namesIn(stored)) named.add(inner);
    }
    return found;
  }

  async #isSame(file: OpenFile): Promise<boolean> {
    if (this.#stateAt < 0) return true;
    return (await file.read(this.#mark.length, this.#stateAt)).equals(this.#mark);
  }

  #clear(): void {
    this.#end = 0;
    this.#stateAt = -1;
    this.#messageCount = 0;
    this.#messages = [];
    this.#pieces = new Map();
    this.#events = [];
    this.#state = undefined;
  }

  #note(kind: string, first: string, { at, bytes: { length } }: RawLine): void {
    if (kind === 'messages') {
      this.#messages.push({ first: this.#messageCount, at, length });
      this.#messageCount += toNumber(first);
    }
    if (kind !== 'piece') return;
    const place = eventsPlace(first);
    if (place === undefined) this.#pieces.set(first, { at, length });
    else this.#addEvents({ place, at, length });
  }

  /** A row with the place of an earlier one replaces it. */
  #addEvents(row: EventsPlace): void {
    const before = this.#events.findLastIndex(({ place }) => place <= row.place);
    const isSame = this.#events[before]?.place === row.place;
    this.#events.splice(isSame ? before : before + 1, isSame ? 1 : 0, row);
  }
}

/** Reads a line, and verifies its checksum. @throws {CheckpointCorruptError} */
export async function lineAt(file: OpenFile, { at, length }: LinePlace): Promise<Line> {
  const line = decodeLine(await file.read(length, at));
  if (line) return line;
  throw new CheckpointCorruptError(`this record is damaged: the checksum of the line at byte ${at} is wrong`);
}

/** Reads rows of events: kept ones, if they do not say otherwise. @throws {CheckpointCorruptError} */
export async function readRows(
  file: OpenFile,
  places: readonly (EventsPlace & { readonly isKept?: boolean })[],
): Promise<readonly JournalRow[]> {
  const rows: JournalRow[] = [];
  for (const each of places) {
    const [, text = ''] = (await lineAt(file, each)).fields;
    rows.push({ place: each.place, isKept: each.isKept ?? true, text });
  }
  return rows;
}
