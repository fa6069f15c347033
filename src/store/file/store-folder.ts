import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Durable } from '../../files/atomic-write.ts';
import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import { withFile } from '../../files/file-system.ts';
import { Locks } from '../../files/lock.ts';
import { StoreUnavailableError } from '../../values/errors.ts';
import { isDeadOwner, newOwner } from '../owner.ts';
import { readOnlyError } from '../read-only.ts';
import { layoutError } from './errors.ts';
import type { Folders } from './folders.ts';
import { LAYOUT } from './journal/lines.ts';

/** Longer than any tick of a system's clock, ms. */
const TICK_MS = 50;

/** Opens the folder of a file store for one process: at the first use, and again if it was removed meanwhile. */
export class StoreFolder {
  readonly #durable: Durable;
  readonly #folders: Folders;
  /** How long a write waits for the lock of another process, ms. */
  readonly #waitMs: number;
  /** Takes no lock, and so makes and changes nothing. */
  readonly #isReadOnly: boolean;
  readonly #owner = newOwner();
  #isChecked = false;
  #isClosed = false;
  #opening: Promise<Opened> | undefined;
  /** The result of `#opening`. */
  #opened: Opened | undefined;
  /** Folders with new names in them, which the disk may not have yet. */
  #unsynced: readonly string[] = [];

  constructor(
    durable: Durable,
    folders: Folders,
    { waitMs, isReadOnly }: { readonly waitMs: number; readonly isReadOnly: boolean },
  ) {
    this.#durable = durable;
    this.#folders = folders;
    this.#waitMs = waitMs;
    this.#isReadOnly = isReadOnly;
  }

  /** For readers: creates nothing. @throws {CheckpointTooNewError} @throws {StoreUnavailableError} */
  async check(): Promise<void> {
    if (this.#isClosed) throw this.#closed();
    if (this.#isChecked) return;
    const bytes = await orAbsent(this.#durable.files.readWhole(this.#folders.layout));
    if (this.#isReadOnly && !bytes) throw new StoreUnavailableError(`the store ${this.#folders.dir} does not exist`);
    const layout = Number(bytes?.toString() ?? LAYOUT);
    if (layout > LAYOUT) throw layoutError(this.#folders.dir, layout, LAYOUT);
    // Another process makes and removes a store that is only read: it is looked for each time.
    this.#isChecked = bytes !== undefined && !this.#isReadOnly;
  }

  /** Makes this process the only writer of a run, until it unlocks it. */
  async lock(name: string): Promise<void> {
    if (this.#isReadOnly) throw readOnlyError(`the store ${this.#folders.dir}`);
    const { locks } = this.#opened ?? (await this.#open());
    try {
      await locks.acquire(name, this.#waitMs);
    } catch (error) {
      throw isAbsent(error) ? this.#gone(error) : error;
    }
  }

  /** A file was not found. @throws {StoreUnavailableError} if the whole store is gone */
  async confirm(): Promise<void> {
    const opened = this.#opened;
    if (!opened) return;
    try {
      await this.#durable.files.stamp(opened.ownerFile);
    } catch (error) {
      throw isAbsent(error) ? this.#gone(error) : error;
    }
  }

  /**
   * Each write makes and removes a lock, which changes the time of their folder. Two changes within one tick of the system's clock
   * have the same time: a time that is so new names nothing.
   */
  async changeMark(): Promise<string> {
    await this.check();
    const found = await orAbsent(this.#durable.files.stamp(this.#folders.locks));
    if (!found) return 'none';
    const { identity, changedAt } = found;
    return Date.now() - changedAt < TICK_MS ? randomUUID() : `${identity} ${changedAt}`;
  }

  /** A failed unlock is harmless: this process still has the lock at its next write, and the lock is stale after its exit. */
  async unlock(name: string): Promise<void> {
    try {
      await this.#opened?.locks.release(name);
    } catch {
      // The next write removes it, or another process after the exit of this one.
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = await this.#opening?.catch(() => undefined);
    this.#opened = undefined;
    if (opened) await this.#durable.files.remove(opened.ownerFile).catch(() => {});
  }

  #closed(): StoreUnavailableError {
    return new StoreUnavailableError(`the store ${this.#folders.dir} was closed`);
  }

  /** The next write creates everything again. */
  #gone(cause: unknown): StoreUnavailableError {
    this.#opening = undefined;
    this.#opened = undefined;
    this.#isChecked = false;
    const what = `the store ${this.#folders.dir} was deleted or replaced while it was open; restore the folder`;
    return new StoreUnavailableError(what, { cause });
  }

  #open(): Promise<Opened> {
    if (this.#isClosed) return Promise.reject(this.#closed());
    this.#opening ??= this.#prepare().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #prepare(): Promise<Opened> {
    const { files } = this.#durable;
    await this.check();
    const { runs, outcomes, mail, locks, owners } = this.#folders;
    // The layout number is written last: without it, no process can know what a killed process had synced.
    const isNew = !this.#isChecked;
    if (isNew && this.#unsynced.length === 0) this.#unsynced = await this.#parents();
    for (const folder of [runs, outcomes, mail, locks, owners]) await files.makeFolder(folder);
    const ownerFile = join(owners, randomUUID());
    if (this.#unsynced.length > 0) await this.#finish();
    await this.#create(ownerFile, this.#owner);
    const found = new Locks(files, {
      folder: locks,
      ownerFile,
      owner: this.#owner,
      isDead: isGone,
      isKnown: this.#isKnown,
    });
    // A failure of the cleanup must not stop the work.
    await this.#tidy(found).catch(() => {});
    this.#opened = { locks: found, ownerFile };
    return this.#opened;
  }

  /** The folder of the store, and its parents that have to be created, up to an existing one. */
  async #parents(): Promise<string[]> {
    const { files } = this.#durable;
    const { dir } = this.#folders;
    const parents = [dir];
    for (let path = dirname(dir); ; path = dirname(path)) {
      parents.push(path);
      if (path === dirname(path) || (await orAbsent(files.stamp(path)))) return parents;
    }
  }

  async #finish(): Promise<void> {
    const { isSynced, folders } = this.#durable;
    const { dir, layout } = this.#folders;
    // Pawl did not create a folder that it may not read; a store inside it works all the same.
    const isOthers = (error: unknown) => ['EACCES', 'EPERM'].includes(systemCode(error) ?? '');
    for (const folder of isSynced ? this.#unsynced : []) {
      await folders.sync(folder).catch((error: unknown) => {
        if (folder === dir || !isOthers(error)) throw error;
      });
    }
    await this.#create(layout, `${LAYOUT}\n`);
    if (isSynced) await folders.sync(dir);
    this.#unsynced = [];
    this.#isChecked = true;
  }

  async #create(path: string, text: string): Promise<void> {
    try {
      await withFile(this.#durable.files.open(path, 'create'), async (file) => {
        await file.write(Buffer.from(text), 0);
        if (this.#durable.isSynced) await file.sync();
      });
    } catch (error) {
      if (systemCode(error) === 'EEXIST') return;
      await this.#durable.files.remove(path).catch(() => {});
      throw error;
    }
  }

  /** Removes the remains of killed processes. */
  async #tidy(locks: Locks): Promise<void> {
    const { files } = this.#durable;
    for (const name of await files.names(this.#folders.owners)) {
      const path = join(this.#folders.owners, name);
      const owner = await orAbsent(files.readWhole(path));
      if (owner && isGone(owner.toString())) await files.remove(path);
    }
    for (const name of await files.names(this.#folders.locks)) if (await locks.inherit(name)) await locks.release(name);
  }

  /** It is unknown whether a process in another container or on another host is alive. */
  readonly #isKnown = (owner: string): boolean => {
    const [host, boot, namespace] = this.#owner.split('|');
    const other = owner.split('|');
    return boot !== '' && namespace !== '' && other[0] === host && other[1] === boot && other[2] === namespace;
  };
}

interface Opened {
  readonly locks: Locks;
  readonly ownerFile: string;
}

/** Whether an owner is certainly a process of this machine that writes nothing any more. */
function isGone(owner: string): boolean {
  return isDeadOwner(owner) && !isDying(owner);
}

/** A killed process counts as dead at once, but one of its threads may still be inside a write. */
function isDying(owner: string): boolean {
  const pid = owner.split('|')[3];
  try {
    const isZombie = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.startsWith('Z') ?? false;
    return isZombie && readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}
