import type { OpenFile } from './file-system.ts';

/** A disk whose syncs take less than this is waited for in place, ms. */
const FAST_MS = 2;

/** So much does the newest sync count in the mean. */
const WEIGHT = 1 / 8;

/** A sync counts for no more than this, ms: one hiccup of a disk must not be held against it for a hundred syncs. */
const MAX_MS = 20;

/** Whoever wrote something else before this time, ms, is not in the way any more. */
const QUIET_MS = 10;

/**
 * The syncs of files on one disk. Handing a sync to another thread and being woken by it takes more CPU than the sync of a
 * fast disk, so that this thread waits in place where nothing else is under way. A disk that becomes slow holds it up once
 * or twice; from then on others wait for it, until it is fast again.
 */
export class Syncs {
  readonly #now: () => number;
  #underWay = 0;
  /** Mean of the last syncs, ms. Slow until shown otherwise. */
  #meanMs = 2 * FAST_MS;
  #last: { readonly name: string; readonly at: number } | undefined;

  /** @param now monotonic ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Something begins that may end in a sync. Whoever says so says `leave`, too. */
  enter(): void {
    this.#underWay += 1;
  }

  leave(): void {
    this.#underWay -= 1;
  }

  /** Waits until the disk has what was written. @param name of what the file belongs to */
  async sync(file: OpenFile, name: string): Promise<void> {
    const startedAt = this.#now();
    const isInPlace = this.#meanMs < FAST_MS && this.#isAlone(name, startedAt);
    await file.sync(isInPlace);
    const endedAt = this.#now();
    this.#last = { name, at: endedAt };
    this.#meanMs += WEIGHT * (Math.min(MAX_MS, endedAt - startedAt) - this.#meanMs);
  }

  /** Others that write at the same time had better share the disk than wait for each other. */
  #isAlone(name: string, now: number): boolean {
    if (this.#underWay > 1) return false;
    const last = this.#last;
    return last === undefined || last.name === name || now - last.at >= QUIET_MS;
  }
}
