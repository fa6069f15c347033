import { type Durable, writeAtomically } from '../../../files/atomic-write.ts';
import { orAbsent } from '../../../files/errors.ts';
import type { FileStamp, OpenFile } from '../../../files/file-system.ts';
import { withFile } from '../../../files/file-system.ts';
import { encodeLine, isIntact, readLines } from '../../../files/lines.ts';
import type { JournalRow } from '../../encoding/stored-journal.ts';
import type { Folders } from '../folders.ts';
import type { EventsPlace } from './line-index.ts';

/** The passing events of a run, as its file has them. */
interface Passing {
  readonly stamp: FileStamp;
  /** The end of the last whole line: later bytes are an incomplete write. */
  readonly end: number;
  readonly rows: readonly EventsPlace[];
}

/** Most files that are remembered: a further one removes the oldest. */
const MAX_KNOWN = 1_000;

/**
 * The passing events of runs in a file store: a file of lines for each run, while a step of it is in progress. A process that
 * changes one holds the lock of the run. No write waits for the disk.
 */
export class PassingFiles {
  readonly #durable: Durable;
  readonly #folders: Folders;
  readonly #known = new Map<string, Passing>();

  constructor(durable: Durable, folders: Folders) {
    this.#durable = { ...durable, isSynced: false };
    this.#folders = folders;
  }

  async append(name: string, rows: readonly JournalRow[]): Promise<void> {
    const found = await this.#find(name);
    const path = this.#folders.passing(name);
    await withFile(this.#durable.files.open(path, found ? 'update' : 'create'), async (file) => {
      const { end, rows: before } = found ?? { end: 0, rows: [] };
      if (found && found.stamp.size > end) await file.truncate(end);
      let at = end;
      const added = rows.map(({ place, text }) => {
        const bytes = encodeLine('events', [place, text]);
        const row = { place, at, length: bytes.length };
        at += bytes.length;
        return { row, bytes };
      });
      await file.write(Buffer.concat(added.map(({ bytes }) => bytes)), end);
      this.#remember(name, { stamp: await file.stamp(), end: at, rows: [...before, ...added.map(({ row }) => row)] });
    });
  }

  /** Removes the rows up to a place. */
  async drop(name: string, dropTo: number): Promise<void> {
    const found = await this.#find(name);
    if (!found) return;
    const path = this.#folders.passing(name);
    const left = found.rows.filter(({ place }) => place > dropTo);
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

  async #find(name: string): Promise<Passing | undefined> {
    const path = this.#folders.passing(name);
    const stamp = await orAbsent(this.#durable.files.stamp(path));
    const known = this.#known.get(name);
    if (!stamp) return undefined;
    if (known && known.stamp.identity === stamp.identity && known.stamp.size === stamp.size) return known;
    return withFile(this.#durable.files.open(path, 'read'), async (file) => ({
      stamp,
      ...(await readPassing(file, 0)),
    }));
  }

  #remember(name: string, passing: Passing): void {
    this.#known.delete(name);
    this.#known.set(name, passing);
    const [oldest] = this.#known.size > MAX_KNOWN ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Reads the rows of a file of passing events from a byte on. Nothing after a damaged line counts: it was an incomplete write. */
export async function readPassing(file: OpenFile, from: number): Promise<Pick<Passing, 'end' | 'rows'>> {
  const rows: EventsPlace[] = [];
  let end = from;
  for await (const { lines } of readLines(file, from)) {
    for (const { at, bytes } of lines) {
      const place = Number(bytes.toString('latin1', 0, 64).split('\t')[2]);
      if (!Number.isSafeInteger(place) || !isIntact(bytes)) return { end, rows };
      rows.push({ place, at, length: bytes.length });
      end = at + bytes.length;
    }
  }
  return { end, rows };
}
