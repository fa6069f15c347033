import type { InterruptedRun, ReadableRun } from '../../../record/interrupted.ts';
import { compareCursors } from '../../../store/cursor.ts';
import type { CheckpointStore, Cursor, ListOptions } from '../../../store/port.ts';

/** Most runs of a page. */
const PAGE = 500;

/** The same items in a random order, each order equally likely (Fisher and Yates). */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.min(i, Math.floor(random() * (i + 1)));
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}

interface Reading {
  readonly signal?: AbortSignal | undefined;
  readonly random?: () => number;
  /** The start of the list; absent = its beginning. */
  readonly after?: Cursor | undefined;
  /** `waiting`: the runs that rest; absent = the others. */
  readonly status?: ListOptions['status'];
  /** Only runs of this caller, if the store can search for them. */
  readonly callerId?: string | undefined;
  /** How many runs are wanted: the first page has no more, each further one twice as many. Default: pages of 500. */
  readonly wanted?: number;
}

/** Iterates over the runs in a store's list, one by one. */
async function* readList(store: CheckpointStore, reading: Reading): AsyncGenerator<InterruptedRun> {
  for await (const page of pages(store, reading)) yield* page;
}

/** A run of a store: `isResting` = the store keeps it without a process until a time or a command. */
export interface StoredEntry {
  readonly entry: InterruptedRun;
  readonly isResting: boolean;
}

/** Iterates over all runs of a store, also those that rest, by the time of their last record. */
export async function* allListed(
  store: CheckpointStore,
  reading: Omit<Reading, 'status'>,
): AsyncGenerator<StoredEntry> {
  const working = readList(store, reading);
  if (!store.due) {
    for await (const entry of working) yield { entry, isResting: false };
    return;
  }
  const resting = readList(store, { ...reading, status: 'waiting' });
  // A run may move from one list to the other meanwhile.
  const seen = new Set<string>();
  let [left, right] = [await working.next(), await resting.next()];
  while (!left.done || !right.done) {
    const isResting = !right.done && (left.done || isAfter(left.value, right.value));
    const entry = (isResting ? right.value : left.value) as InterruptedRun;
    if (!seen.has(entry.runId)) yield { entry, isResting };
    seen.add(entry.runId);
    if (isResting) right = await resting.next();
    else left = await working.next();
  }
}

/** An entry without a time is passed on at once. */
function isAfter(a: InterruptedRun, b: InterruptedRun): boolean {
  if (a.updatedAt === undefined || b.updatedAt === undefined) return a.updatedAt !== undefined;
  return compareCursors(a as Cursor, b as Cursor) > 0;
}

/**
 * Iterates over the runs in a store's list by pages, without repeating one. Recovered runs leave the list as they end, so
 * that each page begins after the last one seen.
 */
export async function* pages(
  store: CheckpointStore,
  { signal, random, after: from, status, callerId, wanted = PAGE }: Reading,
): AsyncGenerator<readonly InterruptedRun[]> {
  let after = from;
  let limit = Math.min(PAGE, wanted);
  // A run that is written during the list moves to its end, and would appear again.
  const seen = new Set<string>();
  for (;;) {
    const page = await store.listInterrupted({
      limit,
      ...(after ? { after } : {}),
      ...(signal ? { signal } : {}),
      ...(status ? { status } : {}),
      ...(callerId === undefined ? {} : { callerId }),
    });
    const news = page.filter(({ runId }) => !seen.has(runId) && seen.add(runId));
    yield random ? shuffled(news, random) : news;
    const last = page.findLast((entry): entry is ReadableRun => 'updatedAt' in entry);
    // Entries from before the list began come before later ones. So a page without new entries is its end; and a host's own
    // list without pages would return the same page forever.
    if (page.length < limit || !last || news.length === 0) return;
    limit = Math.min(PAGE, limit * 2);
    after = { updatedAt: last.updatedAt, runId: last.runId };
  }
}
