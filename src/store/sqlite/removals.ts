import type { RunDatabase } from './connection.ts';
import type { WriteQueue } from './queue.ts';

/** So many numbers of records are looked at in one turn of the event loop. */
const LOOKED_AT_ONCE = 500;

/**
 * Sees to it that what is removed from a database is gone from its files: rows whose time is over, old pages in the WAL, and the
 * messages of large records. Those are removed in pieces, each a transaction in a turn of the event loop of its own.
 */
export class Removals {
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  /** Settles when all pieces are removed that this process has to remove. */
  #pieces: Promise<void> = Promise.resolve();

  constructor(database: RunDatabase, queue: WriteQueue) {
    this.#database = database;
    this.#queue = queue;
  }

  /** Something was removed. @param rest the number of a record whose messages are not all removed */
  happened(rest?: number): void {
    if (rest !== undefined) this.#removeRest(rest);
    this.#database.scrubSoon();
  }

  /** Removes outcomes whose time is over, and what dead processes did not remove whole. @returns how many outcomes */
  async sweep(): Promise<number> {
    const count = await this.#queue.add(({ outcomes }) => outcomes.forgetExpired());
    if (count > 0) this.happened();
    await this.#sweepRests();
    return count;
  }

  /** Waits for the pieces that are still to be removed. */
  async end(): Promise<void> {
    await this.#pieces;
  }

  async #sweepRests(): Promise<void> {
    for (let from: number | undefined = 0; from !== undefined; ) {
      const at: number = from;
      const { found, next } = await this.#queue.add(({ records }) => records.findRest(at, LOOKED_AT_ONCE));
      for (const no of found) this.happened(no);
      from = next;
    }
  }

  #removeRest(no: number): void {
    const removed = this.#pieces.then(async () => {
      while (await this.#queue.add(({ records }) => records.removeRest(no)));
      this.#database.scrubSoon();
    });
    // What fails is left to the sweep, of this process or another.
    this.#pieces = removed.catch(() => {});
  }
}
