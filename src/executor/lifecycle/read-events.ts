import { checkRunId } from '../../run/identity.ts';
import type { JournalEntry } from '../../run/journal/entry.ts';
import {
  beforeRead,
  cursorOf,
  type JournalEvent,
  JournalReader,
  journalStart,
  positionIn,
  type ReadTurns,
} from '../../run/journal/reader.ts';
import type { JournalPage } from '../../store/journal-port.ts';
import { JournalGoneError, UnsupportedError } from '../../values/errors.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { endOfFeed } from '../services/event-feeds.ts';
import { findQueued } from './stored/find-run.ts';

/** The options of `executor.events`. */
export interface FollowOptions {
  /** The `cursor` of the reader's last event. Absent: from the beginning of the run. */
  readonly after?: string | undefined;
  /**
   * Without `after`: begins with the newest events, those of about so many writes to the journal, where the store can. Default: with
   * the first event.
   */
  readonly newest?: number | undefined;
  /** Aborted: the events end. */
  readonly signal?: AbortSignal | undefined;
}

const optionKeys = { after: true, newest: true, signal: true } as const;

/**
 * Follows the journal of a run, from any process.
 * @throws {TypeError} for a wrong call; the iterator throws the rest
 */
export function readEvents(
  services: ExecutorServices,
  runId: string,
  options: FollowOptions & ReadTurns,
): AsyncIterableIterator<JournalEvent> {
  checkKeys(options, optionKeys, { of: 'events' });
  const from = options.after === undefined ? journalStart : positionIn(options.after);
  const { newest } = options;
  if (newest !== undefined && (!Number.isInteger(newest) || newest < 1))
    throw new TypeError(`events: newest must be a whole number above 0, not ${String(newest)}`);
  const reader = new JournalReader(from);
  const ending = new AbortController();
  const given = options.signal;
  const signal = given ? AbortSignal.any([given, ending.signal]) : ending.signal;
  const begin = options.after === undefined ? newest : undefined;
  const turn = options[beforeRead];
  const events = follow(services, { runId: checkRunId(runId), reader, signal, newest: begin, beforeRead: turn });
  return {
    next: () => events.next(),
    // A reader that waits for its next event can still be ended.
    return: () => {
      ending.abort();
      return events.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

interface Following {
  readonly runId: string;
  readonly reader: JournalReader;
  readonly signal: AbortSignal;
  readonly newest?: number | undefined;
  readonly beforeRead?: ReadTurns[typeof beforeRead];
}

async function* follow(
  services: ExecutorServices,
  { runId, reader, signal, newest, beforeRead: turn }: Following,
): AsyncGenerator<JournalEvent, undefined> {
  if (signal.aborted) return;
  if (reader.isOver && !(await isRetried(services, runId, reader.place))) return;
  reader.continue();
  if (newest !== undefined) reader.skipTo(await placeBefore(services, runId, newest));
  const feed = services.config.journal && services.feeds.open(runId, reader.place);
  if (!feed)
    throw new UnsupportedError('events can be read in other processes with the option journal of createExecutor');
  // A stream has one end: the end of a run that was retried is not passed on, and `run.retried` is there in its place.
  let held: JournalEntry | undefined;
  try {
    while (!signal.aborted) {
      const page = await weakPage(feed.after(held?.place ?? reader.place, { signal, beforeRead: turn }));
      if (!page && (await isQueued(services, runId))) {
        feed.lookAgain();
        continue;
      }
      if (!page) {
        yield await lastEvent(services, { runId, reader, signal });
        return;
      }
      for (let i = 0; i <= page.count; i++) {
        const entry = entryOf(page, i);
        const isRetried = held && (entry ? continuesEnded(entry) : await feed.hasAfter(held.place));
        if (held && !isRetried) {
          yield* reader.read(held);
          return;
        }
        if (!entry) {
          // Without the page, it is read again from here.
          if (i === page.count && !held) reader.skipTo(page.next);
          break;
        }
        // The process that retried the run has written no journal.
        if (held && entry.event.type !== 'run.retried') yield* reader.read(retriedOf(held));
        held = entry.event.type === 'run.ended' ? entry : undefined;
        if (held) continue;
        for (const event of reader.read(entry)) {
          yield event;
          if (signal.aborted) return;
        }
      }
    }
  } finally {
    services.feeds.close(runId, feed);
  }
}

/** Returns whether a run was retried after the end at this place of its journal. @throws the store's error */
async function isRetried(
  { config: { journal, store } }: ExecutorServices,
  runId: string,
  place: number,
): Promise<boolean> {
  if (!journal || !store?.journal) return false;
  const page = await store.journal.read(runId, { after: place, limit: 1 });
  return page?.entries.some(continuesEnded) ?? false;
}

/** Whether an entry that follows the end of a run says that the run continues. */
function continuesEnded({ event }: JournalEntry): boolean {
  return event.type === 'run.retried' || event.type === 'run.resumed';
}

/** The event of a retry in the place of the end that it took back. */
function retriedOf({ event, ...entry }: JournalEntry): JournalEntry {
  if (event.type !== 'run.ended') return { event, ...entry };
  const { output: _, ...end } = event;
  return { ...entry, event: { ...end, type: 'run.retried' } };
}

/** The place before the newest entries of a journal; 0 if there are no others. @throws the store's error */
async function placeBefore({ config }: ExecutorServices, runId: string, newest: number): Promise<number> {
  const { store, journal } = config;
  if (!journal || !store?.journal) return 0;
  const page = await store.journal.read(runId, { newest, limit: 1 });
  const [first] = page?.entries ?? [];
  return first ? first.place - 1 : 0;
}

/** A page that its reader does not keep in memory: it may have megabytes, and a stream may be unread for hours. */
interface WeakPage {
  readonly entries: WeakRef<readonly JournalEntry[]>;
  readonly count: number;
  readonly next: number;
}

/** Not part of the generator, which would keep the page while it waits for its consumer. */
async function weakPage(reading: Promise<JournalPage | null>): Promise<WeakPage | null> {
  const page = await reading;
  return page && { entries: new WeakRef(page.entries), count: page.entries.length, next: page.next };
}

function entryOf({ entries }: WeakPage, i: number): JournalEntry | undefined {
  return entries.deref()?.[i];
}

async function isQueued({ config: { store } }: ExecutorServices, runId: string): Promise<boolean> {
  return store !== undefined && (await findQueued(store, runId)) !== undefined;
}

/** The run has no journal, or has it no more. How it ended is its last event. @throws {JOURNAL_GONE} */
async function lastEvent({ config }: ExecutorServices, { runId, reader }: Following): Promise<JournalEvent> {
  const { store, clock } = config;
  const outcome = store && (await endOfFeed(store, runId));
  if (!outcome) throw new JournalGoneError(`run ${runId} has no journal: it ended too long ago, or never began`);
  const { status, output, error } = outcome;
  const seq = reader.place + 1;
  const cursor = cursorOf({ ...journalStart, place: seq, isOver: true });
  return { type: 'run.ended', status, output, ...(error ? { error } : {}), runId, seq, at: clock.now(), cursor };
}
