import { unlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { withFile } from '../files/atomic-write.ts';
import type { FileSystem } from '../files/file-system.ts';
import { LockedError, Locks } from '../files/lock.ts';
import { storeError } from '../store/file-errors.ts';
import { isDeadOwner, newOwner } from '../store/owner.ts';
import { writerOf } from './checkpoint-file.ts';
import { FanOutOwnedElsewhereError } from './errors.ts';

/** Who works on which file in this process. */
const claimedHere = new Map<string, FileClaim>();

/** What is held goes with the process, also when nobody lets it go. A process that is killed leaves it to the next one. */
function letAllGo(): void {
  for (const { lockPath } of claimedHere.values()) {
    try {
      unlinkSync(lockPath);
    } catch {
      // The next process sees that its holder is dead.
    }
  }
}

/**
 * The right to work on a checkpoint file, for one process of this machine. Of two that want it the second is refused; what a
 * killed process held is taken over at once.
 */
export class FileClaim {
  readonly lockPath: string;
  readonly #key: string;
  readonly #files: FileSystem;
  #locking: Promise<void> = Promise.resolve();
  #isLost = false;

  private constructor(path: string, files: FileSystem) {
    this.#key = resolve(path);
    this.lockPath = `${this.#key}.lock`;
    this.#files = files;
  }

  /**
   * @param options.supersede takes over from a writer of this process that was never closed
   * @throws {FanOutOwnedElsewhereError} while somebody else works on the file @throws {StoreUnavailableError} …
   */
  static async acquire(
    path: string,
    { files, supersede = false }: { readonly files: FileSystem; readonly supersede?: boolean },
  ): Promise<FileClaim> {
    const claim = new FileClaim(path, files);
    const before = claimedHere.get(claim.#key);
    if (before && !supersede) throw new FanOutOwnedElsewhereError(`this process works on ${path} already`);
    if (claimedHere.size === 0) process.on('exit', letAllGo);
    claimedHere.set(claim.#key, claim);
    if (before) before.#isLost = true;
    // The lock of the process is there already, unless the one before could not have it either.
    claim.#locking = before ? before.#locking.catch(() => claim.#lock(path)) : claim.#lock(path);
    try {
      await claim.#locking;
      return claim;
    } catch (error) {
      claim.#forget();
      throw storeError(error, path);
    }
  }

  /** @throws {FanOutOwnedElsewhereError} when somebody else of this process has taken the file over */
  check(): void {
    if (!this.#isLost) return;
    throw new FanOutOwnedElsewhereError(`another writer of this process has taken over ${this.#key}`);
  }

  async release(): Promise<void> {
    if (claimedHere.get(this.#key) !== this) return;
    try {
      await this.#files.remove(this.lockPath);
    } finally {
      this.#forget();
    }
  }

  #forget(): void {
    if (claimedHere.get(this.#key) === this) claimedHere.delete(this.#key);
    if (claimedHere.size === 0) process.off('exit', letAllGo);
  }

  async #lock(path: string): Promise<void> {
    await this.#files.makeFolder(dirname(this.#key));
    await this.#take(path);
    await this.#sweep();
  }

  async #take(path: string): Promise<void> {
    const owner = newOwner();
    const ownerFile = `${this.lockPath}.${owner.split('|').at(-1)}`;
    await withFile(this.#files.open(ownerFile, 'create'), (file) => file.write(Buffer.from(owner), 0));
    const locks = new Locks(this.#files, {
      folder: dirname(this.#key),
      ownerFile,
      owner,
      isDead: isDeadOwner,
      // One of another machine may live: nobody here can tell, so it keeps what it has.
      isKnown: () => true,
    });
    try {
      await locks.acquire(basename(this.lockPath), 0);
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      const holder = await this.#files.readWhole(this.lockPath).catch(() => Buffer.from(''));
      throw new FanOutOwnedElsewhereError(`${path} is being worked on by ${named(holder.toString())}`, {
        cause: error,
      });
    } finally {
      await this.#files.remove(ownerFile);
    }
  }

  /** What killed processes had not finished. */
  async #sweep(): Promise<void> {
    const folder = dirname(this.#key);
    const base = basename(this.#key);
    for (const name of await this.#files.names(folder)) {
      const pid = writerOf(name, base);
      const isLeft =
        pid === undefined ? await this.#isOfDeadOwner(join(folder, name), `${base}.lock.`) : !isRunning(pid);
      if (isLeft) await this.#files.remove(join(folder, name));
    }
  }

  async #isOfDeadOwner(path: string, prefix: string): Promise<boolean> {
    if (!basename(path).startsWith(prefix)) return false;
    const owner = await this.#files.readWhole(path).catch(() => Buffer.from(''));
    return isDeadOwner(owner.toString());
  }
}

function named(owner: string): string {
  const [host = '', , , pid = ''] = owner.split('|');
  return pid === '' ? 'another process' : `process ${pid} of ${host}; wait for it, or end it first`;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
