import { createHash } from 'node:crypto';
import { sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, lockBackoff } from '../values/backoff.ts';
import { orAbsent, systemCode } from './errors.ts';
import type { FileSystem } from './file-system.ts';

interface LockOptions {
  /** The folder of the locks. */
  readonly folder: string;
  /** A file in the same file system that holds `owner`. A lock is a link to it. */
  readonly ownerFile: string;
  /** The name of this owner, which no other owner ever has. */
  readonly owner: string;
  /** Whether the owner is certainly a dead process. */
  readonly isDead: (owner: string) => boolean;
  /** Whether `isDead` can find out that this owner died. */
  readonly isKnown: (owner: string) => boolean;
}

/** The error of a lock that another owner held for longer than the caller was ready to wait. */
export class LockedError extends Error {
  constructor(path: string, holder: string) {
    super(`${path} is held by ${holder}`);
    this.name = new.target.name;
  }
}

/**
 * An owner whose process cannot be checked (another container, another host) loses its lock after this long, ms. Locks
 * are held for one write: an owner that holds one for so long no longer works.
 */
const PATIENCE_MS = 60_000;

/** The longest pause between two attempts, ms. */
const MAX_PAUSE_MS = 50;

/**
 * Locks between processes. A lock is a link to a file that names its holder. Only one process can make the link, and the
 * link has its content from the first moment on. So a holder that was killed is always known, and never blocks others.
 */
export class Locks {
  readonly #files: FileSystem;
  readonly #options: LockOptions;
  /** When this process first saw each lock of an unknown owner, monotonic ms. */
  readonly #seen = new Map<string, number>();

  constructor(files: FileSystem, options: LockOptions) {
    this.#files = files;
    this.#options = options;
  }

  /**
   * Acquires a lock, and waits while another owner holds it.
   * @throws {LockedError} after `waitMs`
   * @throws errors of the file system
   */
  async acquire(name: string, waitMs: number): Promise<void> {
    if (await this.#take(name)) return void this.#forget(name);
    const latest = performance.now() + waitMs;
    for (let attempts = 1; ; attempts++) {
      if (await this.#attempt(name)) return;
      const holder = await this.#holderOf(name);
      if (holder !== undefined && performance.now() >= latest) throw new LockedError(this.#pathOf(name), holder);
      // With jitter, so that processes that wait for one lock do not retry at the same time.
      if (holder !== undefined) await sleep(backoffMs(attempts, { ...lockBackoff, maxMs: MAX_PAUSE_MS }));
    }
  }

  release(name: string): Promise<void> {
    return this.#files.remove(this.#pathOf(name));
  }

  /** Takes a lock that a dead holder has left. @returns whether there was one, and this owner now holds it */
  async inherit(name: string): Promise<boolean> {
    const holder = await this.#holderOf(name);
    if (holder === undefined || holder === this.#options.owner) return false;
    return this.#isAbandoned(name, holder) && this.#takeOver(name, holder);
  }

  async #attempt(name: string): Promise<boolean> {
    if (await this.#take(name)) return this.#forget(name);
    const holder = await this.#holderOf(name);
    // This owner failed to release it the last time.
    if (holder === this.#options.owner) return true;
    if (holder === undefined || !this.#isAbandoned(name, holder)) return false;
    return (await this.#takeOver(name, holder)) && this.#forget(name);
  }

  /**
   * Replaces an abandoned lock by our own. Several processes may want to: the right to do so is a lock of its own, named
   * after the dead holder. The process that gets it checks the holder again, because another may have been faster.
   */
  async #takeOver(name: string, holder: string): Promise<boolean> {
    const right = `${name}.${createHash('sha256').update(holder).digest('hex').slice(0, 16)}`;
    if (!(await this.#attempt(right))) return false;
    if ((await this.#holderOf(name)) !== holder) {
      await this.release(right);
      return false;
    }
    await this.#files.rename(this.#pathOf(right), this.#pathOf(name));
    return true;
  }

  async #take(name: string): Promise<boolean> {
    try {
      await this.#files.link(this.#options.ownerFile, this.#pathOf(name));
      return true;
    } catch (error) {
      if (systemCode(error) === 'EEXIST') return false;
      throw error;
    }
  }

  #isAbandoned(name: string, holder: string): boolean {
    if (this.#options.isDead(holder)) return true;
    if (this.#options.isKnown(holder)) return false;
    const key = `${name} ${holder}`;
    const since = this.#seen.get(key) ?? performance.now();
    this.#seen.set(key, since);
    return performance.now() - since >= PATIENCE_MS;
  }

  #forget(name: string): true {
    if (this.#seen.size > 0)
      for (const key of this.#seen.keys()) if (key.startsWith(`${name} `)) this.#seen.delete(key);
    return true;
  }

  async #holderOf(name: string): Promise<string | undefined> {
    return (await orAbsent(this.#files.readWhole(this.#pathOf(name))))?.toString();
  }

  #pathOf(name: string): string {
    return this.#options.folder + sep + name;
  }
}
