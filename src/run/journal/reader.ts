import type { RunEvent, RunEventBody } from '../events/body.ts';
import type { JournalEntry, TextPlace } from './entry.ts';
import { placeAfter, unread } from './reply-view.ts';

/** An event for a reader in any process. `cursor`: reading continues after it, on any host. */
export type JournalEvent = RunEvent & { readonly cursor: string };

/** How far a reader has read: the journal up to a place, and of the step in progress the text up to a place. */
export interface ReaderPosition extends TextPlace {
  /** The place of the last entry. */
  readonly place: number;
  /** The step that was read last; 0 = none. */
  readonly step: number;
  /** The model call whose pieces were read; 0 = none. */
  readonly attempt: number;
  /** The run has ended, and its last event was read. */
  readonly isOver?: true | undefined;
}

/** Before the first event. */
export const journalStart: ReaderPosition = { place: 0, step: 0, attempt: 0, block: 0, offset: 0 };

/**
 * An option of `executor.events` for the handlers of this package: a read of the journal for this reader waits for it. A symbol of all
 * copies of the package: a handler and its executor may be of two.
 */
export const beforeRead: unique symbol = Symbol.for('pawl.beforeRead');

export interface ReadTurns {
  readonly [beforeRead]?: (() => Promise<void>) | undefined;
}

const CURSOR = /^\d{1,16}(?:-\d{1,16}){4}(?:-end)?$/;

/** Returns the text of a position, as readers keep it. */
export function cursorOf({ place, step, attempt, block, offset, isOver }: ReaderPosition): string {
  return [place, step, attempt, block, offset, ...(isOver ? ['end'] : [])].join('-');
}

/** Returns the position of a cursor. @throws {TypeError} for a text that is not a cursor */
export function positionIn(cursor: unknown): ReaderPosition {
  const parts = typeof cursor === 'string' && CURSOR.test(cursor) ? cursor.split('-') : [];
  const [place = -1, step = 0, attempt = 0, block = 0, offset = 0] = parts.slice(0, 5).map(Number);
  if (place < 0 || ![place, step, attempt, block, offset].every(Number.isSafeInteger))
    throw new TypeError('after is not a cursor; use the `cursor` of the last event');
  return { place, step, attempt, block, offset, ...(parts.length > 5 ? { isOver: true } : {}) };
}

/** Returns whether a cursor says that its reader has the last event of the run. */
export function isEndCursor(cursor: string): boolean {
  return CURSOR.test(cursor) && cursor.endsWith('-end');
}

type Delta = Extract<RunEvent, { type: 'model.delta' }>;
type Snapshot = Extract<RunEvent, { type: 'step.snapshot' }>;

/**
 * Makes the events of one reader from the entries of a journal. Of a recorded step whose pieces it has read, a reader gets the rest
 * of the text, and the whole message if it has more than text. A step whose pieces it has not read comes as a whole. Pieces of
 * another attempt than the recorded one are voided by `step.reset`.
 */
export class JournalReader {
  #at: ReaderPosition;

  constructor(from: ReaderPosition) {
    this.#at = from;
  }

  /** The place of the last entry that was read. */
  get place(): number {
    return this.#at.place;
  }

  /** Whether the last event of the run was read. */
  get isOver(): boolean {
    return this.#at.isOver === true;
  }

  /** The run was retried after the last event that was read. That end is read again: the retry may have no event of its own. */
  continue(): void {
    if (!this.#at.isOver) return;
    const { isOver: _, place, ...at } = this.#at;
    this.#at = { ...at, place: Math.max(0, place - 1) };
  }

  /** There is nothing for this reader up to a place. */
  skipTo(place: number): void {
    if (place > this.#at.place) this.#at = { ...this.#at, place };
  }

  /** Returns the events that an entry means for this reader: none if it has them already. */
  read(entry: JournalEntry): JournalEvent[] {
    const { place, event, attempt = 0 } = entry;
    if (place <= this.#at.place) return [];
    const before = this.#at;
    this.#at = { ...before, place };
    switch (event.type) {
      case 'step.started':
        this.#at = { place, step: event.step, attempt, block: 0, offset: 0 };
        return [this.#event(event)];
      case 'model.delta':
        return this.#piece(event, attempt);
      case 'tool.input':
        if (attempt !== this.#at.attempt) this.#begin(event.step, attempt);
        // The arguments of several calls may arrive by turns.
        if (event.block > this.#at.block) this.#at = { ...this.#at, block: event.block, offset: 0 };
        return [this.#event(event)];
      case 'step.reset':
        this.#at = { ...this.#at, step: Math.min(this.#at.step, event.step), attempt: 0, block: 0, offset: 0 };
        return [this.#event(event)];
      case 'run.ended':
        this.#at = { ...this.#at, isOver: true };
        return [this.#event(event)];
      case 'step.snapshot':
        return this.#recorded(event, entry, before);
      default:
        return [this.#event(event)];
    }
  }

  #begin(step: number, attempt: number): void {
    this.#at = { ...this.#at, step, attempt, block: 0, offset: 0 };
  }

  #piece(delta: Delta, attempt: number): JournalEvent[] {
    if (attempt !== this.#at.attempt) this.#begin(delta.step, attempt);
    const text = unread(this.#at, delta);
    if (text === '') return [];
    const end = placeAfter(delta);
    this.#at = { ...this.#at, ...end };
    return [this.#event({ ...delta, offset: end.offset - text.length, text })];
  }

  /** The texts of a recorded message after this reader's place: each is a piece that begins where its text does. */
  #rest({ step, content, runId, seq, at }: Snapshot, attempt: number): JournalEvent[] {
    return content.flatMap((part, block) => {
      if (part.type !== 'text' && part.type !== 'reasoning') return [];
      const { type: kind, text } = part;
      return this.#piece({ type: 'model.delta', step, kind, block, offset: 0, text, runId, seq, at }, attempt);
    });
  }

  #recorded(snapshot: Snapshot, { attempt = 0, end, place }: JournalEntry, before: ReaderPosition): JournalEvent[] {
    const { step, attempt: read, block, offset } = before;
    const hasPieces = step === snapshot.step && read !== 0;
    const isSame = hasPieces && read === attempt;
    const after = { place, step: snapshot.step, attempt: 0, block: 0, offset: 0 };
    // Only the last event has the place of the entry: a reader that is cut before it gets the others again.
    this.#at = before;
    const events: JournalEvent[] = [];
    // Pieces that were redacted alone may differ from the whole: they cannot be continued.
    const isContinued = isSame && end === undefined;
    if (isContinued) events.push(...this.#rest(snapshot, attempt));
    const isComplete = isSame && end?.block === block && end.offset === offset;
    if (isContinued || isComplete) {
      this.#at = after;
      // Pieces carry only texts.
      if (snapshot.content.some(({ type }) => type !== 'text' && type !== 'reasoning')) {
        return [...events, this.#event(snapshot)];
      }
      const last = events.pop();
      return last ? [...events, this.#event(last)] : [];
    }
    const { runId, seq, at } = snapshot;
    this.#at = { ...after, place: before.place };
    if (hasPieces) events.push(this.#event({ type: 'step.reset', step: snapshot.step, runId, seq, at }));
    this.#at = after;
    return [...events, this.#event(snapshot)];
  }

  #event(event: RunEventBody & Pick<RunEvent, 'runId' | 'seq' | 'at'>): JournalEvent {
    const { cursor: _, ...plain } = event as JournalEvent;
    return { ...plain, cursor: cursorOf(this.#at) } as JournalEvent;
  }
}
