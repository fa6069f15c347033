import { type Durable, writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import { decodeLine, encodeLine } from '../../files/lines.ts';
import { isSafeName, safeName } from '../../files/safe-name.ts';
import { CheckpointCorruptError, PawlError } from '../../values/errors.ts';
import { endedPageOf } from '../cursor.ts';
import { parseStored } from '../encoding/encode.ts';
import type { EndedToKeep } from '../rules/decision.ts';
import type { EndedHead, EndedPage } from '../store-driver.ts';
import type { Folders } from './folders.ts';
import { toNumber } from './journal/lines.ts';
import { eachOf } from './list.ts';

/** What is kept of a run that ended, beside its journal. */
export interface EndedEntry extends EndedToKeep {
  readonly runId: string;
  /** Wall clock, ms. */
  readonly endedAt: number;
}

/**
 * The runs that ended and whose record is kept, in a file store: the folder of each is moved to `ended` when it ends, with a file
 * `entry`. Nothing in it is written again. Writers hold the lock of the run.
 */
export class EndedFiles {
  readonly #durable: Durable;
  readonly #folders: Folders;
  readonly #now: () => number;
  /** How long each is kept, by name, so that a sweep need not read all entries. */
  readonly #keepUntil = new Map<string, number>();

  constructor(durable: Durable, folders: Folders, now: () => number) {
    this.#durable = durable;
    this.#folders = folders;
    this.#now = now;
  }

  isOver({ keepUntil }: Pick<EndedEntry, 'keepUntil'>): boolean {
    return keepUntil <= this.#now();
  }

  /** The entry of a run, expired or not. @throws {CheckpointCorruptError} */
  async find(name: string): Promise<EndedEntry | undefined> {
    const path = this.#folders.entry(name);
    const bytes = await orAbsent(this.#durable.files.readWhole(path));
    if (bytes === undefined) return undefined;
    const line = decodeLine(bytes);
    const [endedAt, keepUntil, epoch, runId = '', agent = '', caller = '', text = ''] = line?.fields ?? [];
    if (line?.kind !== 'ended') {
      throw new CheckpointCorruptError(`the entry ${path} of a run that ended is damaged: its checksum is wrong`);
    }
    const id = String(parseStored(runId, 'run id'));
    if (safeName(id) !== name) throw new CheckpointCorruptError(`the entry ${path} is damaged: it names the run ${id}`);
    const keys = { agent: keyIn(agent), caller: keyIn(caller) };
    const times = { endedAt: toNumber(endedAt), keepUntil: toNumber(keepUntil), epoch: toNumber(epoch) };
    return { runId: id, ...times, ...keys, text };
  }

  /** Whether the record of a run that ended is kept, and its time is not over. */
  async isKept(name: string): Promise<boolean> {
    const entry = await this.find(name);
    return entry !== undefined && !this.isOver(entry);
  }

  /** The epoch in a kept record; 0 without one. A damaged entry has none. */
  async epoch(name: string): Promise<number> {
    const entry = await unlessDamaged(this.find(name));
    return entry && !this.isOver(entry) ? entry.epoch : 0;
  }

  /** Moves the folder of a run that ends. The entry comes first: a run whose folder is not moved has not ended. */
  async put(name: string, runId: string, { text, agent, caller, keepUntil, epoch }: EndedToKeep): Promise<void> {
    const { files, isSynced, folders } = this.#durable;
    const { dir, runs, ended } = this.#folders;
    for (const path of [this.#folders.waits(name), this.#folders.expiry(name)]) await files.remove(path, true);
    const keys = [agent, caller].map((key) => JSON.stringify(key));
    const line = encodeLine('ended', [this.#now(), keepUntil, epoch, JSON.stringify(runId), ...keys, text]);
    await writeAtomically(this.#durable, this.#folders.newEntry(name), (file) => file.write(line, 0));
    const isNew = !(await orAbsent(files.stamp(ended)));
    if (isNew) await files.makeFolder(ended);
    await files.removeFolder(this.#folders.endedRun(name));
    await files.rename(this.#folders.run(name), this.#folders.endedRun(name));
    this.#keepUntil.set(name, keepUntil);
    if (!isSynced) return;
    if (isNew) await folders.sync(dir);
    await folders.sync(ended);
    await folders.sync(runs);
  }

  /** Removes what is kept of a run, if there is any. */
  async remove(name: string): Promise<void> {
    const { files, isSynced, folders } = this.#durable;
    const path = this.#folders.endedRun(name);
    this.#keepUntil.delete(name);
    if (!(await orAbsent(files.stamp(path)))) return;
    await files.removeFolder(path);
    if (isSynced) await folders.sync(this.#folders.ended);
  }

  /** Reads a page of the entries: all of them, as a list of this store reads all runs. */
  async page(page: EndedPage): Promise<EndedHead[]> {
    const found: (EndedHead & Pick<EndedToKeep, 'agent' | 'caller'>)[] = [];
    await eachOf(await this.#names(), async (name) => {
      try {
        const entry = await this.find(name);
        if (entry && !this.isOver(entry)) found.push(entry);
      } catch (error) {
        if (!(error instanceof PawlError)) throw error;
        // The time of a damaged entry is unknown, and so is the id of its run.
        found.push({ runId: name, endedAt: 0, text: '', agent: '', caller: '', error });
      }
    });
    return endedPageOf(found, page);
  }

  /** The names of the runs whose time is over. One without an entry was removed in part. */
  async expired(): Promise<readonly string[]> {
    const names: string[] = [];
    await eachOf(await this.#names(), async (name) => {
      const known = this.#keepUntil.get(name);
      if (known !== undefined && known > this.#now()) return;
      const entry = await this.find(name).catch(() => null);
      if (entry) this.#keepUntil.set(name, entry.keepUntil);
      if (entry === undefined || (entry && this.isOver(entry))) names.push(name);
    });
    return names;
  }

  /** Removes what is kept of a run if its time is over. */
  async forget(name: string): Promise<void> {
    const entry = await unlessDamaged(this.find(name), null);
    if (entry === undefined || (entry && this.isOver(entry))) await this.remove(name);
  }

  async #names(): Promise<string[]> {
    const names = (await orAbsent(this.#durable.files.folders(this.#folders.ended))) ?? [];
    return names.filter(isSafeName);
  }
}

/** A key is any text, or null. */
const keyIn = (stored: string) => parseStored(stored, 'key') as string | null;

async function unlessDamaged<T, D = undefined>(reading: Promise<T>, instead?: D): Promise<T | D> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof PawlError) return instead as D;
    throw error;
  }
}
