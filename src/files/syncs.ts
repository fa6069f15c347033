import type { FileSystem, OpenFile } from './file-system.ts';

/** This thread waits in place for a disk whose syncs take less than this, ms. */
const FAST_MS = 2;

/** The weight of the newest sync in the mean. */
const WEIGHT = 1 / 8;

/** A sync counts for at most this, ms: one slow sync must not count against the disk for the next hundred. */
const MAX_MS = 20;

/** A name whose last write is older than this, ms, counts as idle. */
const QUIET_MS = 10;

/**
 * Syncs files to the disk (fsync), in this thread while the disk is fast, else in another one. A sync in another thread
 * costs more CPU than the sync of a fast disk itself. So this thread waits in place if no other sync is under way. A disk
 * that becomes slow blocks it once or twice; after that another thread waits, until the disk is fast again.
 */
export class Syncs {
  readonly #now: () => number;
  #underWay = 0;
  /** Mean of the last syncs, ms. A disk counts as slow until it proves fast. */
  #meanMs = 2 * FAST_MS;
  #last: { readonly name: string; readonly at: number } | undefined;

  /** @param now monotonic ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Begins work that may end in a sync. The caller must call `leave`, too. */
  enter(): void {
    this.#underWay += 1;
  }

  leave(): void {
    this.#underWay -= 1;
  }

  /** Waits until the disk has all written bytes. @param name of what the file belongs to */
  async sync(file: OpenFile, name: string): Promise<void> {
    const startedAt = this.#now();
    const isInPlace = this.#meanMs < FAST_MS && this.#isAlone(name, startedAt);
    await file.sync(isInPlace);
    const endedAt = this.#now();
    this.#last = { name, at: endedAt };
    this.#meanMs += WEIGHT * (Math.min(MAX_MS, endedAt - startedAt) - this.#meanMs);
  }

  /** Writers that work at the same time share the disk, so none of them may block the thread. */
  #isAlone(name: string, now: number): boolean {
    if (this.#underWay > 1) return false;
    const last = this.#last;
    return last === undefined || last.name === name || now - last.at >= QUIET_MS;
  }
}

/** Syncs folders to the disk after renames. Requests that arrive during a sync share the next one. */
export class FolderSyncs {
  readonly #files: FileSystem;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  constructor(files: FileSystem) {
    this.#files = files;
  }

  /** Resolves when the disk has all names that the folder has at the call. */
  sync(path: string): Promise<void> {
    const underWay = this.#underWay.get(path);
    if (!underWay) return this.#start(path);
    const waiting = this.#next.get(path);
    if (waiting) return waiting;
    const next = underWay.then(
      () => this.#start(path),
      () => this.#start(path),
    );
    this.#next.set(path, next);
    return next;
  }

  #start(path: string): Promise<void> {
    this.#next.delete(path);
    const syncing = this.#files.syncFolder(path).finally(() => {
      if (this.#underWay.get(path) === syncing) this.#underWay.delete(path);
    });
    this.#underWay.set(path, syncing);
    return syncing;
  }
}
