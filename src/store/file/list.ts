import { orAbsent } from '../../files/errors.ts';
import type { FileStamp } from '../../files/file-system.ts';
import { isSafeName } from '../../files/safe-name.ts';
import { compareCursors, dueAmong } from '../cursor.ts';
import { isResting, ON_COMMAND } from '../due.ts';
import type { Cursor, ListDueOptions } from '../port.ts';
import { isHeld } from '../rules/lease.ts';
import type { DueHeads, ListedHead, ListPage, StoreDriver, TakeDue, TakenHeads } from '../store-driver.ts';
import { takeAmong } from '../taking/in-turns.ts';
import { storeError } from './errors.ts';
import { type Leftover, ListEntries } from './list-entries.ts';
import type { WriteQueues } from './queue.ts';
import { isSameJournal, type RunFiles } from './run-files.ts';
import type { StoreFolder } from './store-folder.ts';

/** How many journals are read at once. */
const AT_ONCE = 16;

/** Up to this many runs the first page is not read a second time. */
const KEPT_ENTRIES = 1_000;

/** Further pages use the places of the first one for this time, ms. */
const PLACES_LAST_MS = 30_000;

/** A folder without a record is left alone for this time, ms: a process may be about to write one. */
const LEFTOVER_MS = 3_600_000;

/** The place of each run in the list, by name; runs outside of a page keep nothing else. */
interface Places {
  readonly foundAt: number;
  /** Which runs were asked for. */
  readonly resting: boolean | undefined;
  readonly byName: Map<string, Cursor>;
  /** The names in order; undefined if a place has changed since. */
  sorted: readonly string[] | undefined;
}

/** A run that rests, as long as its journal stays the same. */
interface Resting {
  readonly stamp: FileStamp;
  readonly due: number;
}

/** One call. */
interface Listing extends ListPage {
  readonly entries: ListEntries;
  readonly read: Map<string, ListedHead>;
}

/**
 * Lists runs without an index on disk: the first page reads the end of every journal to sort the runs, further ones read the
 * runs that they show. Runs that another process begins meanwhile are in the next list.
 */
export class Lister {
  readonly #access: StoreFolder;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;
  #places: Places | undefined;
  /** The runs that rested at the last look, by name. */
  #resting: ReadonlyMap<string, Resting> = new Map();

  constructor(access: StoreFolder, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  async list(page: ListPage): Promise<ListedHead[]> {
    try {
      await this.#access.check();
      await this.#queues.idle();
      return await this.#page({ ...page, entries: new ListEntries(this.#files), read: new Map() });
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  /** A page of due runs. A run that rests, and has not changed since the last call, is not read. */
  async due(page: ListDueOptions): Promise<DueHeads> {
    const now = page.now ?? this.#files.now();
    const { heads, resting } = await this.#others(now);
    const nextAt = resting.reduce((least, due) => Math.min(least, due), ON_COMMAND);
    const found = dueAmong(heads, page, now);
    return { ...found, ...(nextAt < ON_COMMAND ? { nextAt } : {}) };
  }

  /** Takes due runs: each claim is a write, and a run that another process took meanwhile is passed over. */
  async takeDue(take: TakeDue, driver: Pick<StoreDriver, 'write'>): Promise<TakenHeads> {
    const now = take.now ?? this.#files.now();
    const { heads, resting } = await this.#others(now);
    const found = await takeAmong(heads, take, { now, driver });
    const nextAt = resting.reduce((least, due) => Math.min(least, due), found.nextAt ?? ON_COMMAND);
    return { ...found, ...(nextAt < ON_COMMAND ? { nextAt } : {}) };
  }

  async countResting(): Promise<number> {
    return (await this.#others(this.#files.now())).resting.length;
  }

  /** The heads of the runs that do not rest, and the times of those that do. */
  async #others(now: number): Promise<{ readonly heads: ListedHead[]; readonly resting: number[] }> {
    const { durable, folders } = this.#files;
    try {
      await this.#access.check();
      await this.#queues.idle();
      const names = (await orAbsent(durable.files.folders(folders.runs))) ?? [];
      const entries = new ListEntries(this.#files);
      const heads: ListedHead[] = [];
      const known = new Map<string, Resting>();
      await eachOf(names.filter(isSafeName), async (name) => {
        const stamp = await orAbsent(durable.files.stamp(folders.journal(name)));
        const before = this.#resting.get(name);
        if (stamp && before && isSameJournal(before.stamp, stamp) && before.due > now) known.set(name, before);
        else {
          const entry = await entries.read(name);
          if (!entry || isLeftover(entry)) return;
          if (stamp && isResting(entry.due, now)) known.set(name, { stamp, due: Number(entry.due) });
          else heads.push(entry);
        }
      });
      this.#resting = known;
      return { heads, resting: [...known.values()].map(({ due }) => due) };
    } catch (error) {
      throw storeError(error, folders.dir);
    }
  }

  async #page(listing: Listing): Promise<ListedHead[]> {
    const { after, limit, read } = listing;
    const places = await this.#placesFor(listing);
    for (;;) {
      const names = namesAfter(places, after).slice(0, limit);
      const missing = names.filter((name) => !read.has(name));
      if (missing.length === 0) {
        if (names.length < limit) this.#forget(places);
        return names.flatMap((name) => read.get(name) ?? []);
      }
      // Runs that moved or ended meanwhile make room for others.
      await this.#look(missing, listing, places);
    }
  }

  async #placesFor(listing: Listing): Promise<Places> {
    const known = this.#places;
    const { written } = this.#files;
    const { resting } = listing;
    if (known && known.resting === resting && listing.after && performance.now() - known.foundAt < PLACES_LAST_MS) {
      const changed = [...(written.names ?? [])];
      written.names?.clear();
      await this.#look(changed, listing, known);
      return known;
    }
    const places: Places = { foundAt: performance.now(), resting, byName: new Map(), sorted: undefined };
    this.#places = places;
    written.names = new Set();
    const names = await orAbsent(this.#files.durable.files.folders(this.#files.folders.runs));
    if (!names) await this.#access.confirm();
    const leftovers = await this.#look((names ?? []).filter(isSafeName), listing, places);
    for (const name of leftovers) this.#tidy(name);
    return places;
  }

  /** Reads runs, and puts them in their places. @returns the names of leftovers that are old enough to remove */
  async #look(
    names: readonly string[],
    { entries, read, signal, resting }: Listing,
    places: Places,
  ): Promise<string[]> {
    const leftovers: string[] = [];
    const now = this.#files.now();
    await eachOf(names, async (name) => {
      signal?.throwIfAborted();
      const found = await entries.read(name);
      if (isLeftover(found) && Date.now() - found.changedAt > LEFTOVER_MS) leftovers.push(name);
      const isAsked = found && !isLeftover(found) && (resting === undefined || isResting(found.due, now) === resting);
      const entry = isAsked ? found : undefined;
      const isWanted = names.length <= KEPT_ENTRIES || read.size < KEPT_ENTRIES;
      if (entry && isWanted) read.set(name, entry);
      place(places, name, entry);
    });
    return leftovers;
  }

  #forget(places: Places): void {
    if (this.#places !== places) return;
    this.#places = undefined;
    this.#files.written.names = undefined;
  }

  /** Removes a leftover, if it is still one under its lock. */
  #tidy(name: string): void {
    const { leaseClock } = this.#files;
    const removing = this.#queues.add({ runId: '', name }, (session) =>
      session.removeLeftover((lease) => isHeld(lease, leaseClock.now())),
    );
    removing.catch(() => {
      // It stays until the next list.
    });
  }
}

function isLeftover(found: ListedHead | Leftover | undefined): found is Leftover {
  return found !== undefined && 'changedAt' in found;
}

function place(places: Places, name: string, cursor: Cursor | undefined): void {
  const before = places.byName.get(name);
  if (before?.updatedAt === cursor?.updatedAt && before?.runId === cursor?.runId) return;
  places.sorted = undefined;
  if (cursor) places.byName.set(name, { updatedAt: cursor.updatedAt, runId: cursor.runId });
  else places.byName.delete(name);
}

function namesAfter(places: Places, after: Cursor | undefined): readonly string[] {
  if (!places.sorted) {
    const sorted = [...places.byName].sort(([, a], [, b]) => compareCursors(a, b));
    places.sorted = sorted.map(([name]) => name);
  }
  if (!after) return places.sorted;
  return places.sorted.filter((name) => compareCursors(places.byName.get(name) ?? after, after) > 0);
}

/** Works on all of them, a few at a time. */
export async function eachOf(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  const rest = names.values();
  const lanes = Array.from({ length: AT_ONCE }, async () => {
    for (const name of rest) await work(name);
  });
  await Promise.all(lanes);
}
