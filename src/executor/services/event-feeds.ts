import type { JournalEntry } from '../../run/journal/entry.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { JournalPage } from '../../store/journal-port.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { nextTurn } from '../../values/event-loop.ts';
import { charsIn } from '../../values/json.ts';

/** How long the reads for all readers wait for a turn of one of them, ms. */
const LONGEST_TURN_MS = 10_000;

/** How often the journal of a run is read while events come, and otherwise, ms. */
const FLOWING_MS = 100;
const RESTING_MS = 1_000;
/** Events that came within this time still flow, ms. */
const FLOWS_FOR_MS = 3_000;
/** Most entries of one read. */
const PAGE = 500;
/** After this many reads without news it is checked whether the run has ended without a last event. */
const LOOKS_TO_CHECK = 5;
/** About how many characters of entries are kept for the readers of one run. */
const TAIL_CHARS = 2 ** 20;

/** Returns how a run ended: its kept outcome, or that of its kept record. Undefined if neither is there. */
export async function endOfFeed(store: CheckpointStore, runId: string): Promise<Omit<RunOutcome, 'run'> | undefined> {
  const outcome = (await store.outcomes?.find(runId)) ?? null;
  if (outcome) return outcome;
  const kept = store.history ? await store.load(runId, { ended: true, messages: false }) : null;
  return kept?.outcome;
}

/** The journals that readers of this process follow. Each journal is read once for all of its readers. */
export class EventFeeds {
  readonly #store: CheckpointStore | undefined;
  readonly #clock: Clock;
  readonly #feeds = new Map<string, Feed>();
  #timer: unknown;
  #dueAt = Number.POSITIVE_INFINITY;
  #cause: unknown;

  constructor(store: CheckpointStore | undefined, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The feed of a run, for one more reader; it must close it. @throws the cause of the end */
  open(runId: string, after: number): Feed | undefined {
    if (this.#cause !== undefined) throw this.#cause;
    const store = this.#store;
    const journal = store?.journal;
    if (!journal) return undefined;
    const read = (from: number) => journal.read(runId, { after: from, limit: PAGE });
    const known = this.#feeds.get(runId);
    const isEnded = async () => (await endOfFeed(store, runId)) !== undefined;
    const feed: Feed =
      known ?? new Feed(after, { read, isEnded, clock: this.#clock, onWait: () => this.#waitFor(feed) });
    this.#feeds.set(runId, feed);
    feed.readers += 1;
    return feed;
  }

  close(runId: string, feed: Feed): void {
    feed.readers -= 1;
    if (feed.readers === 0 && this.#feeds.get(runId) === feed) this.#feeds.delete(runId);
  }

  /** A run of this process has published something. */
  wake(runId: string): void {
    const feed = this.#feeds.get(runId);
    feed?.noteNews();
    if (feed?.isAwaited) this.#look(feed);
  }

  /** Ends all readers: this host leaves. */
  end(cause: unknown): void {
    this.#cause = cause;
    this.#clock.clearTimeout(this.#timer);
    for (const feed of this.#feeds.values()) feed.fail(cause);
  }

  #waitFor(feed: Feed): void {
    if (feed.dueAt <= this.#clock.monotonic()) this.#look(feed);
    else this.#arm();
  }

  #look(feed: Feed): void {
    void feed.look(this.#clock.monotonic()).then(() => {
      // The next reader begins again.
      if (feed.hasFailed) this.#forget(feed);
      this.#arm();
    });
  }

  #forget(feed: Feed): void {
    for (const [runId, known] of this.#feeds) if (known === feed) this.#feeds.delete(runId);
  }

  /** One timer for all of them. */
  #arm(): void {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const feed of this.#feeds.values()) dueAt = Math.min(dueAt, feed.dueAt);
    if (dueAt === this.#dueAt || this.#cause !== undefined) return;
    this.#clock.clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    if (dueAt === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.setTimeout(() => this.#lookAll(), Math.max(0, dueAt - this.#clock.monotonic()));
  }

  #lookAll(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonic();
    // Those that are due soon are read as well: a store may read many journals at once.
    for (const feed of this.#feeds.values()) if (feed.dueAt <= now + FLOWING_MS / 2) this.#look(feed);
    this.#arm();
  }
}

type BeforeRead = (() => Promise<void>) | undefined;

/** How one reader reads. */
interface ReadWish {
  readonly signal: AbortSignal;
  /** Its own reads wait for it. */
  readonly beforeRead?: BeforeRead;
}

/** The newest entries of one journal. */
class Feed {
  readonly #clock: Clock;
  readers = 0;
  readonly #read: (after: number) => Promise<JournalPage | null>;
  readonly #isEnded: () => Promise<boolean>;
  readonly #onWait: () => void;
  #tail: { readonly entry: JournalEntry; readonly chars: number }[] = [];
  #chars = 0;
  /** Entries after this place are in the tail. */
  #start: number;
  #end: number;
  #newsAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #isAsked = false;
  #idleLooks = 0;
  #waiting: (() => void)[] = [];
  /** The page that was read last, for those who wait for it. The tail has no page that is larger than itself. */
  #newest: { readonly after: number; readonly page: WeakRef<JournalPage> } | undefined;
  /** Of the reader that waits last: reads of many pages wait for it between them. */
  #beforeRead: BeforeRead;
  /** The run has no record, or has ended and nothing more comes. */
  #isGone = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    after: number,
    from: {
      readonly read: (after: number) => Promise<JournalPage | null>;
      /** Whether the outcome of the run is known. */
      readonly isEnded: () => Promise<boolean>;
      readonly clock: Clock;
      readonly onWait: () => void;
    },
  ) {
    this.#read = from.read;
    this.#isEnded = from.isEnded;
    this.#clock = from.clock;
    this.#onWait = from.onWait;
    this.#start = after;
    this.#end = after;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Whether something comes after a place, as a look of the last second says. @throws the store's error */
  async hasAfter(place: number): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (place >= this.#end && now - this.#lookedAt >= RESTING_MS) await this.look(now);
    if (this.#failure) throw this.#failure.error;
    return this.#end > place;
  }

  /** There may be something new: it is read as soon as a reader waits. */
  noteNews(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  /** Whether a reader waits for news. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  /** When it should be read again, monotonic ms. */
  get dueAt(): number {
    // Without a waiting reader there is nothing to read for: streams that are not read cost nothing.
    if (this.#looking || this.#waiting.length === 0) return Number.POSITIVE_INFINITY;
    const flows = this.#lookedAt - this.#newsAt < FLOWS_FOR_MS;
    return this.#lookedAt + (flows ? FLOWING_MS : RESTING_MS);
  }

  /**
   * What comes after a place, once there is something; null if there is no record of the run. An aborted signal ends it with an
   * empty page.
   * @throws the store's error
   */
  async after(place: number, { signal, beforeRead }: ReadWish): Promise<JournalPage | null> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      if (signal.aborted) return { entries: [], next: place };
      if (place < this.#start) {
        const newest = this.#newestAfter(place);
        if (newest) return newest;
        await beforeRead?.();
        if (signal.aborted) continue;
        const page = await this.#read(place);
        if (!page || page.next > place) return page;
        // What was there is deleted: the tail is next. Without one, the first reader named a place that does not exist.
        if (this.#tail.some(({ entry }) => entry.place > place)) this.#start = Math.min(this.#start, place);
        else this.#beginAt(place);
      }
      if (place < this.#end) return this.#after(place);
      if (this.#isGone) return null;
      this.#beforeRead = beforeRead;
      await this.#news(signal);
    }
  }

  #newestAfter(place: number): JournalPage | undefined {
    const { after = 0, page } = this.#newest ?? {};
    const found = place >= after ? page?.deref() : undefined;
    return found && found.next > place ? found : undefined;
  }

  #beginAt(place: number): void {
    this.#tail = [];
    this.#chars = 0;
    this.#start = place;
    this.#end = place;
  }

  /** Reads what is new. Never rejects: the readers get the error. @param now monotonic ms */
  look(now: number): Promise<void> {
    this.#isAsked = true;
    this.#looking ??= this.#lookAll(now).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** The run has no record yet: its turn has not come. */
  lookAgain(): void {
    this.#isGone = false;
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#tell();
  }

  async #lookAll(now: number): Promise<void> {
    this.#lookedAt = now;
    const isFirst = this.#newsAt === Number.NEGATIVE_INFINITY;
    // A run that is followed from its start has nothing in its journal yet.
    if (isFirst) this.#newsAt = now;
    try {
      if (isFirst && this.#beforeRead) await this.#turn();
      while (this.#isAsked) {
        this.#isAsked = false;
        const from = this.#end;
        const page = await this.#read(from);
        this.#isGone = page === null;
        if (page && this.#end !== from) this.#isAsked = true;
        else if (page && page.next > from) {
          this.#add(page, now);
          // A long journal has hundreds of pages: others have their turns, and who left by then needs no more of them.
          await this.#turn();
          if (this.readers === 0) break;
        } else if (page) await this.#checkEnd(now);
      }
    } catch (error) {
      this.#failure = { error };
    }
    this.#tell();
  }

  /** A run may end without a last event: its journal was switched on or off meanwhile. */
  async #checkEnd(now: number): Promise<void> {
    this.#idleLooks += 1;
    // Nothing may ever have come: then a run that has ended is answered at once.
    const isFirst = this.#idleLooks === 1 && this.#tail.length === 0;
    if ((!isFirst && this.#idleLooks % LOOKS_TO_CHECK !== 0) || !(await this.#isEnded())) return;
    const from = this.#end;
    const page = await this.#read(from);
    if (page && page.next > from && this.#end === from) this.#add(page, now);
    else this.#isGone = this.#end === from;
  }

  /** Of one reader, for all of them: what it throws, or that it never answers, ends no reading of others. */
  async #turn(): Promise<void> {
    const turn = this.#beforeRead;
    if (!turn) return nextTurn();
    const asked = (async () => turn())();
    await withDeadline(asked, { ms: LONGEST_TURN_MS, clock: this.#clock, what: 'beforeRead' }).catch(() => {});
  }

  #add(page: JournalPage, now: number): void {
    const { entries, next } = page;
    this.#newest = { after: this.#end, page: new WeakRef(page) };
    for (const entry of entries) {
      const chars = charsIn(entry.event, TAIL_CHARS);
      this.#tail.push({ entry, chars });
      this.#chars += chars;
    }
    this.#end = next;
    this.#newsAt = now;
    this.#idleLooks = 0;
    this.#isAsked = true;
    let lost = 0;
    for (; this.#chars > TAIL_CHARS && lost < this.#tail.length; lost++) {
      const { entry, chars = 0 } = this.#tail[lost] ?? {};
      this.#chars -= chars;
      this.#start = entry?.place ?? this.#start;
    }
    if (lost > 0) this.#tail = this.#tail.slice(lost);
  }

  #after(place: number): JournalPage {
    const entries = this.#tail.filter(({ entry }) => entry.place > place).map(({ entry }) => entry);
    return { entries, next: this.#end };
  }

  #news(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener('abort', end);
        resolve();
      };
      signal.addEventListener('abort', end);
      this.#waiting.push(end);
      this.#onWait();
    });
  }

  #tell(): void {
    for (const end of this.#waiting.splice(0)) end();
  }
}
