import type { Clock } from '../../values/clock.ts';
import { Minutely } from '../minutely.ts';
import type { RunDatabase } from './connection.ts';
import type { WriteQueue } from './queue.ts';

/** Sees to it that what is removed from a database is gone from its files: rows whose time is over, and old pages in the WAL. */
export class Removals {
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  readonly #minutely: Minutely;

  constructor(database: RunDatabase, queue: WriteQueue, clock: Clock) {
    this.#database = database;
    this.#queue = queue;
    this.#minutely = new Minutely(clock, () => void this.forgetOutcomes().catch(() => {}));
  }

  /** From now on outcomes whose time is over are removed once a minute. */
  begin(): void {
    this.#minutely.begin();
  }

  /** Something was removed. */
  happened(): void {
    this.#database.scrubSoon();
  }

  /** @returns how many outcomes were past their time */
  async forgetOutcomes(): Promise<number> {
    const count = await this.#queue.add(({ outcomes }) => outcomes.forgetExpired());
    if (count > 0) this.happened();
    return count;
  }

  end(): void {
    this.#minutely.end();
  }
}
