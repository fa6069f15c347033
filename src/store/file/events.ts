import { dirname } from 'node:path';
import { orAbsent } from '../../files/errors.ts';
import type { OpenFile } from '../../files/file-system.ts';
import { withFile } from '../../files/file-system.ts';
import { safeName } from '../../files/safe-name.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import type { JournalRow } from '../encoding/stored-journal.ts';
import type { Claim } from '../port.ts';
import type { JournalDriver, MessageRange, PartReader, RowsPage, StoredPart } from '../store-driver.ts';
import { storeError } from './errors.ts';
import { type EventsPlace, JournalIndex, lineAt, readRows } from './journal/line-index.ts';
import { readPublished } from './journal/published.ts';
import { readSummary } from './journal/read.ts';
import { nameRun, type WriteQueues } from './queue.ts';
import { surely } from './reader.ts';
import { checkFolder, type RunFiles } from './run-files.ts';
import type { StoreFolder } from './store-folder.ts';

/** About how many bytes of events are read at once. */
const BYTES_PER_PAGE = 2 ** 19;

/** Most journals whose lines are remembered: a further one removes the oldest. */
const MAX_KNOWN = 200;

/** Most looks at files that change meanwhile. */
const MAX_LOOKS = 20;

/** What is known of the published events of a run. */
interface PublishedIndex {
  readonly identity: string;
  readonly size: number;
  readonly end: number;
  readonly rows: readonly (EventsPlace & { readonly isKept: boolean })[];
}

interface EventsPaths {
  readonly journal: string;
  readonly published: string;
}

/**
 * The journals of events in a file store. The events of a save are lines of the journal of its run, published ones have a file
 * of their own. Readers take no lock, and read only what is new.
 */
export class FileEvents implements JournalDriver {
  readonly #access: StoreFolder;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;
  readonly #journals = new Map<string, JournalIndex>();
  readonly #turns = new Map<string, Promise<void>>();
  readonly #published = new Map<string, PublishedIndex>();

  constructor(access: StoreFolder, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  async publish({ claim, rows }: { claim: Claim; rows: readonly JournalRow[] }, signal?: AbortSignal): Promise<void> {
    await this.#queues.addAlone(nameRun(claim.runId), (session) => session.publish(claim, rows), signal);
  }

  read(runId: string, page: RowsPage): Promise<readonly JournalRow[] | null> {
    const { journal, published, endedJournal, endedPublished } = this.#files.folders;
    return this.#reading(runId, async (name) => {
      const live = await this.#readPage({ journal: journal(name), published: published(name) }, page);
      if (live !== null || !(await this.#files.ended.isKept(name))) return live;
      return this.#readPage({ journal: endedJournal(name), published: endedPublished(name) }, page);
    });
  }

  async #readPage(paths: EventsPaths, wanted: RowsPage): Promise<readonly JournalRow[] | null> {
    const { newest } = wanted;
    const before =
      newest === undefined
        ? undefined
        : await this.#withJournal(paths.journal, async (_file, index) => index.eventsAfter(0).at(-1 - newest));
    const page = { ...wanted, after: Math.max(wanted.after, before?.place ?? 0) };
    const parts = await this.#readBoth(paths, page);
    if (parts === null) return null;
    const { recorded, published } = parts;
    // If one source has more than this page, the rows of the other one beyond it belong to a later page.
    const end = Math.min(recorded.end, published.end);
    const rows = [...recorded.rows, ...published.rows].filter(({ place }) => place <= end);
    return rows.sort((a, b) => a.place - b.place).slice(0, page.limit);
  }

  content(runId: string, { from, to }: MessageRange, row: PartReader): Promise<StoredPart | null> {
    const { journal, endedJournal } = this.#files.folders;
    const part = (path: string) =>
      this.#withJournal(path, async (file, index): Promise<StoredPart | null> => {
        const { record } = index.state ?? {};
        if (!record) return null;
        const { head, messageCount } = record;
        for (const place of from < to ? index.messagesIn(from, Math.min(to, messageCount)) : []) {
          const [, text = ''] = (await lineAt(file, place)).fields;
          row(place.first, text, await index.pieces(file, text));
        }
        return { head, pieces: await index.pieces(file, head), messageCount };
      });
    const read = from < to ? part : (path: string) => this.#headAt(path, runId);
    return this.#reading(runId, async (name) => {
      const live = await read(journal(name));
      if (live !== null || !(await this.#files.ended.isKept(name))) return live;
      const ended = await read(endedJournal(name));
      // A run that ended has no lease: its record counts the attempts.
      return ended && { ...ended, attempts: undefined, hasEnded: true };
    });
  }

  /** The head of a record, from the ends of its journal: no message is read. */
  async #headAt(path: string, runId: string): Promise<StoredPart | null> {
    const { durable } = this.#files;
    await checkFolder(this.#files, dirname(path));
    const found = await orAbsent(withFile(durable.files.open(path, 'read'), readSummary));
    if (found?.head === undefined) return null;
    const { head, meta, pieces, journal } = found;
    if (found.runId !== runId)
      throw new CheckpointCorruptError(`this record is damaged: it names the run ${found.runId}`);
    const messageCount = journal.record?.messageCount ?? 0;
    return { head, meta, pieces, messageCount, attempts: journal.lease?.value.attempts };
  }

  /**
   * Reads both files as they were at one moment: a reader goes by places, and must not get an entry of one file before an earlier
   * one of the other.
   */
  async #readBoth(
    { journal, published: path }: EventsPaths,
    page: RowsPage,
  ): Promise<{ recorded: Part; published: Part } | null> {
    const stampOf = async () => {
      const stamp = await orAbsent(this.#files.durable.files.stamp(path));
      return stamp && `${stamp.identity} ${stamp.size}`;
    };
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const before = await stampOf();
      const published = await this.#readPublished(path, page);
      const recorded = await this.#readRecorded(journal, page);
      if (recorded === null) return null;
      if ((await stampOf()) === before) return { recorded, published };
    }
    // It changes all the time: a later look finds it at rest.
    return { recorded: nothing, published: nothing };
  }

  async #readRecorded(path: string, { after, limit }: RowsPage): Promise<Part | null> {
    const { durable } = this.#files;
    const known = this.#journals.get(path);
    const stamp = await orAbsent(durable.files.stamp(path));
    const hasAll = stamp !== undefined && known?.fits(stamp) === true;
    if (hasAll && known.state?.record && known.eventsAfter(after).length === 0) return nothing;
    return this.#withJournal(path, async (file, index) => {
      if (!index.state?.record) return null;
      const { places, end } = pageOf(index.eventsAfter(after), limit);
      return { rows: await readRows(file, places), end };
    });
  }

  /** One after the other for each file: what is known of it must not change while it is used. */
  #withJournal<T>(path: string, work: (file: OpenFile, index: JournalIndex) => Promise<T>): Promise<T | null> {
    const turn = (this.#turns.get(path) ?? Promise.resolve()).then(() => this.#readJournal(path, work));
    const end: Promise<void> = turn.then(noMore, noMore).then(() => {
      if (this.#turns.get(path) === end) this.#turns.delete(path);
    });
    this.#turns.set(path, end);
    return turn;
  }

  async #readJournal<T>(path: string, work: (file: OpenFile, index: JournalIndex) => Promise<T>): Promise<T | null> {
    const { durable } = this.#files;
    await checkFolder(this.#files, dirname(path));
    const reading = withFile(durable.files.open(path, 'read'), async (file) => {
      const index = this.#journals.get(path) ?? new JournalIndex();
      try {
        await index.update(file);
        remember(this.#journals, path, index);
        return await work(file, index);
      } catch (error) {
        // The next look begins again.
        this.#journals.delete(path);
        throw error;
      }
    });
    return (await orAbsent(reading)) ?? null;
  }

  async #readPublished(path: string, { after, limit }: RowsPage): Promise<Part> {
    const { durable } = this.#files;
    const stamp = await orAbsent(durable.files.stamp(path));
    const known = this.#published.get(path);
    const isKnown = known?.identity === stamp?.identity && known?.size === stamp?.size;
    if (!stamp || (isKnown && known && !known.rows.some(({ place }) => place > after))) return nothing;
    const reading = withFile(durable.files.open(path, 'read'), async (file) => {
      const { identity, size } = await file.stamp();
      const before = known?.identity === identity && known.end <= size ? known : undefined;
      const { end, rows } = await readPublished(file, before?.end ?? 0);
      const index = { identity, size, end, rows: [...(before?.rows ?? []), ...rows] };
      remember(this.#published, path, index);
      const later = index.rows.filter(({ place }) => place > after).sort((a, b) => a.place - b.place);
      const { places, end: last } = pageOf(later, limit);
      return { rows: await readRows(file, places), end: last };
    });
    return (await orAbsent(reading)) ?? nothing;
  }

  async #reading<T>(runId: string, work: (name: string) => Promise<T>): Promise<T> {
    const name = safeName(runId);
    try {
      await this.#access.check();
      await this.#queues.idle(name);
      const answer = await surely(() => work(name));
      if (answer === null) await this.#access.confirm();
      return answer;
    } catch (error) {
      if (error instanceof CheckpointCorruptError) this.#published.delete(this.#files.folders.published(name));
      throw storeError(error, this.#files.folders.dir);
    }
  }
}

/** Rows of one source, and up to which place it has no others. */
interface Part {
  readonly rows: readonly JournalRow[];
  readonly end: number;
}

const nothing: Part = { rows: [], end: Number.POSITIVE_INFINITY };

/** The first rows that fit in a page: at least one. */
function pageOf<P extends EventsPlace>(places: readonly P[], limit: number) {
  let bytes = 0;
  const end = places.findIndex(({ length }, i) => {
    bytes += length;
    return i > 0 && (i >= limit || bytes > BYTES_PER_PAGE);
  });
  if (end < 0) return { places, end: Number.POSITIVE_INFINITY };
  return { places: places.slice(0, end), end: places[end - 1]?.place ?? 0 };
}

function remember<T>(known: Map<string, T>, name: string, value: T): void {
  known.delete(name);
  known.set(name, value);
  const [oldest] = known.size > MAX_KNOWN ? known.keys() : [];
  if (oldest !== undefined) known.delete(oldest);
}

function noMore(): void {}
