import { unlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileError } from '../files/errors.ts';
import type { FileSystem } from '../files/file-system.ts';
import { withFile } from '../files/file-system.ts';
import { LockedError, Locks } from '../files/lock.ts';
import { isDeadOwner, isRunning, newOwner } from '../store/owner.ts';
import { temporaryFor, writerOf } from './checkpoint-file.ts';
import { FanOutOwnedElsewhereError } from './errors.ts';

/** The claims of this process, by file. */
const claimedHere = new Map<string, FileClaim>();

/**
 * The owner name with which this process locks a file. It stays the same until the lock is certainly gone: after a failed
 * unlock, the next attempt still finds its own lock.
 */
const owners = new Map<string, string>();

/** Locks are released at the end of the process. A killed process leaves its locks to the next process. */
function letAllGo(): void {
  for (const { lockPath, isHeld } of claimedHere.values()) {
    try {
      // A lock that this process only waits for belongs to another one.
      if (isHeld) unlinkSync(lockPath);
    } catch {
      // The next process detects that the holder is dead.
    }
  }
}

interface ClaimOptions {
  readonly files: FileSystem;
  /** Takes over from a claim of this process that was never released, if that claim has this option, too. */
  readonly supersede?: boolean;
}

/**
 * Claims a checkpoint file for one process of this machine, so that a second fan-out is refused. The claim of a killed
 * process is taken over at once.
 */
export class FileClaim {
  readonly lockPath: string;
  readonly #key: string;
  readonly #files: FileSystem;
  readonly #canSupersede: boolean;
  #locking: Promise<void> = Promise.resolve();
  #releasing: Promise<void> | undefined;
  /** The current work under this claim; it never rejects. */
  #working: Promise<void> = Promise.resolve();
  #isHeld = false;
  #isLost = false;

  private constructor(path: string, { files, supersede = false }: ClaimOptions) {
    this.#key = resolve(path);
    this.lockPath = `${this.#key}.lock`;
    this.#files = files;
    this.#canSupersede = supersede;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /**
   * Claims a checkpoint file for this process.
   * @throws {FAN_OUT_OWNED_ELSEWHERE} while another process or call uses the file
   * @throws {STORE_UNAVAILABLE} …
   */
  static async acquire(path: string, options: ClaimOptions): Promise<FileClaim> {
    const claim = new FileClaim(path, options);
    const before = claimedHere.get(claim.#key);
    if (before && !claim.#maySupersede(before))
      throw new FanOutOwnedElsewhereError(`this process already uses ${path}`);
    if (claimedHere.size === 0) process.on('exit', letAllGo);
    claimedHere.set(claim.#key, claim);
    if (before) before.#isLost = true;
    claim.#locking = before ? claim.#takeOver(before, path) : claim.#lock(path);
    try {
      await claim.#locking;
      claim.#isHeld = true;
      return claim;
    } catch (error) {
      claim.#forget();
      throw fileError(error, path);
    }
  }

  /**
   * Runs `work` on the file. A claim that takes over waits until it is done, so that it cannot overwrite newer content.
   * @throws {FAN_OUT_OWNED_ELSEWHERE} if another claim of this process has taken the file over
   */
  async during(work: () => Promise<void>): Promise<void> {
    if (this.#isLost) {
      throw new FanOutOwnedElsewhereError(`another writer of this process has taken over ${this.#key}`);
    }
    const working = work();
    this.#working = working.catch(() => {});
    await working;
  }

  /**
   * Releases the claim of a checkpoint file.
   * @throws {STORE_UNAVAILABLE} … and the lock stays, for other processes, until this one ends or claims it again
   */
  async release(): Promise<void> {
    if (claimedHere.get(this.#key) === this) this.#releasing ??= this.#unlock().finally(() => this.#forget());
    await this.#releasing;
  }

  /** A claim that is being released can always be superseded. */
  #maySupersede(before: FileClaim): boolean {
    return this.#canSupersede && (before.#canSupersede || before.#releasing !== undefined);
  }

  async #unlock(): Promise<void> {
    try {
      await this.#files.remove(this.lockPath);
      owners.delete(this.#key);
    } catch (error) {
      throw fileError(error, this.#key);
    }
  }

  #forget(): void {
    if (claimedHere.get(this.#key) === this) claimedHere.delete(this.#key);
    if (claimedHere.size === 0) process.off('exit', letAllGo);
  }

  /** This process already has the lock, unless the earlier claim never got it or has released it. */
  async #takeOver(before: FileClaim, path: string): Promise<void> {
    const isThere = await before.#locking.then(
      () => before.#releasing === undefined,
      () => false,
    );
    await before.#releasing?.catch(() => {});
    await before.#working;
    if (!isThere) await this.#lock(path);
  }

  async #lock(path: string): Promise<void> {
    await this.#files.makeFolder(dirname(this.#key));
    await this.#take(path);
    // Files that are left over are harmless: a later process may be able to remove them.
    await this.#sweep().catch(() => {});
  }

  async #take(path: string): Promise<void> {
    const owner = owners.get(this.#key) ?? newOwner();
    owners.set(this.#key, owner);
    const ownerFile = temporaryFor(this.lockPath);
    const locks = new Locks(this.#files, {
      folder: dirname(this.#key),
      ownerFile,
      owner,
      isDead: isDeadHolder,
      // A holder on another machine may be alive: this process cannot check it, so the holder keeps its lock.
      isKnown: () => true,
    });
    try {
      await withFile(this.#files.open(ownerFile, 'create'), (file) => file.write(Buffer.from(owner), 0));
      await locks.acquire(basename(this.lockPath), 0);
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      owners.delete(this.#key);
      const holder = await this.#files.readWhole(this.lockPath).catch(() => Buffer.from(''));
      throw new FanOutOwnedElsewhereError(`${path} is in use by ${named(holder.toString())}`, {
        cause: error,
      });
    } finally {
      await this.#files.remove(ownerFile).catch(() => {});
    }
  }

  /** Removes the unfinished files of killed processes. */
  async #sweep(): Promise<void> {
    const folder = dirname(this.#key);
    const base = basename(this.#key);
    for (const name of await this.#files.names(folder)) {
      const pid = writerOf(name, base) ?? writerOf(name, `${base}.lock`);
      const isLeft =
        pid === undefined ? await this.#isOfDeadOwner(join(folder, name), `${base}.lock.`) : !isRunning(pid);
      if (isLeft) await this.#files.remove(join(folder, name)).catch(() => {});
    }
  }

  async #isOfDeadOwner(path: string, prefix: string): Promise<boolean> {
    if (!basename(path).startsWith(prefix)) return false;
    const owner = await this.#files.readWhole(path).catch(() => Buffer.from(''));
    return isDeadOwner(owner.toString());
  }
}

/** The parts of the name of an owner. */
const OWNER_PARTS = 6;

/** A lock has its whole text from the first moment on; after a power loss it may be incomplete. */
function isDeadHolder(holder: string): boolean {
  return holder.split('|').length < OWNER_PARTS || isDeadOwner(holder);
}

/** No name of an owner is longer, bytes. */
const LOCK_BYTES = 4_096;

/**
 * Returns whether a process works on a checkpoint file, as far as this machine can see: a process of another machine counts, and
 * the lock that a killed one left does not.
 * @internal
 */
export async function isInUse(path: string): Promise<boolean> {
  const lock = await open(`${path}.lock`).catch(() => undefined);
  try {
    const read = await lock?.read({ buffer: Buffer.alloc(LOCK_BYTES) });
    return read !== undefined && !isDeadHolder(read.buffer.toString('utf8', 0, read.bytesRead));
  } catch {
    return false;
  } finally {
    await lock?.close();
  }
}

function named(owner: string): string {
  const [host = '', , , pid = ''] = owner.split('|');
  return pid === '' ? 'another process' : `process ${pid} of ${host}; wait for it, or end it first`;
}
