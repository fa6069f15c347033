import { type Durable, writeAtomically } from '../../../files/atomic-write.ts';
import { orAbsent } from '../../../files/errors.ts';
import type { FileStamp, OpenFile } from '../../../files/file-system.ts';
import { withFile } from '../../../files/file-system.ts';
import { encodeLine, isIntact, readLines } from '../../../files/lines.ts';
import type { JournalRow } from '../../encoding/stored-journal.ts';
import type { Folders } from '../folders.ts';
import { type EventsPlace, readRows } from './line-index.ts';

/** A row of published events. */
interface PublishedPlace extends EventsPlace {
  readonly isKept: boolean;
}

/** The published events of a run, as their file has them. */
interface Published {
  readonly stamp: FileStamp;
  /** The end of the last whole line: later bytes are an incomplete write. */
  readonly end: number;
  readonly rows: readonly PublishedPlace[];
}

const KEPT = 'kept';
const PASSING = 'passing';

/** Most files that are remembered: a further one removes the oldest. */
const MAX_KNOWN = 1_000;

/**
 * The published events of runs in a file store: a file of lines for each run, while a step of it is in progress. The next save
 * that ends a step moves the kept ones to the run's journal, and deletes the passing ones. A process that changes a file holds the
 * lock of the run. No write waits for the disk.
 */
export class PublishedFiles {
  readonly #durable: Durable;
  readonly #folders: Folders;
  readonly #known = new Map<string, Published>();

  constructor(durable: Durable, folders: Folders) {
    this.#durable = { ...durable, isSynced: false };
    this.#folders = folders;
  }

  async append(name: string, rows: readonly JournalRow[]): Promise<void> {
    const found = await this.#find(name);
    const path = this.#folders.published(name);
    await withFile(this.#durable.files.open(path, found ? 'update' : 'create'), async (file) => {
      const { end, rows: before } = found ?? { end: 0, rows: [] };
      if (found && found.stamp.size > end) await file.truncate(end);
      let at = end;
      const added = rows.map(({ place, isKept, text }) => {
        const bytes = encodeLine(isKept ? KEPT : PASSING, [place, text]);
        const row = { place, isKept, at, length: bytes.length };
        at += bytes.length;
        return { row, bytes };
      });
      await file.write(Buffer.concat(added.map(({ bytes }) => bytes)), end);
      this.#remember(name, { stamp: await file.stamp(), end: at, rows: [...before, ...added.map(({ row }) => row)] });
    });
  }

  /** The kept rows. */
  async kept(name: string): Promise<readonly JournalRow[]> {
    const found = await this.#find(name);
    const kept = found?.rows.filter(({ isKept }) => isKept) ?? [];
    if (kept.length === 0) return [];
    return withFile(this.#durable.files.open(this.#folders.published(name), 'read'), (file) => readRows(file, kept));
  }

  /** Removes the kept rows, and the passing ones up to a place. */
  async drop(name: string, dropTo: number): Promise<void> {
    const found = await this.#find(name);
    if (!found) return;
    const path = this.#folders.published(name);
    const left = found.rows.filter(({ place, isKept }) => !isKept && place > dropTo);
    this.#known.delete(name);
    if (left.length === 0) return this.#durable.files.remove(path);
    if (left.length === found.rows.length) return;
    await withFile(this.#durable.files.open(path, 'read'), (from) =>
      writeAtomically(this.#durable, path, async (file) => {
        let at = 0;
        for (const row of left) {
          await file.write(await from.read(row.length, row.at), at);
          at += row.length;
        }
      }),
    );
  }

  async #find(name: string): Promise<Published | undefined> {
    const path = this.#folders.published(name);
    const stamp = await orAbsent(this.#durable.files.stamp(path));
    const known = this.#known.get(name);
    if (!stamp) return undefined;
    if (known && known.stamp.identity === stamp.identity && known.stamp.size === stamp.size) return known;
    return withFile(this.#durable.files.open(path, 'read'), async (file) => ({
      stamp,
      ...(await readPublished(file, 0)),
    }));
  }

  #remember(name: string, passing: Published): void {
    this.#known.delete(name);
    this.#known.set(name, passing);
    const [oldest] = this.#known.size > MAX_KNOWN ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Reads the rows of a file of published events from a byte on. Nothing after a damaged line counts: it was an incomplete write. */
export async function readPublished(file: OpenFile, from: number): Promise<Pick<Published, 'end' | 'rows'>> {
  const rows: PublishedPlace[] = [];
  let end = from;
  for await (const { lines } of readLines(file, from)) {
    for (const { at, bytes } of lines) {
      const [, kind, first] = bytes.toString('latin1', 0, 64).split('\t');
      const place = Number(first);
      if (!Number.isSafeInteger(place) || !isIntact(bytes)) return { end, rows };
      rows.push({ place, isKept: kind === KEPT, at, length: bytes.length });
      end = at + bytes.length;
    }
  }
  return { end, rows };
}
