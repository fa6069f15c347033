import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  type BucketCharge,
  type ChargedBuckets,
  IDLE_MS,
  idleAt,
  nextAfter,
  REMOVED_AT_ONCE,
} from '../../limits/buckets.ts';

/** The rows of `limits` in SQLite. Callers hold the transaction. */
export class LimitTable {
  readonly #now: () => number;
  readonly #find: StatementSync;
  readonly #put: StatementSync;
  readonly #removeIdle: StatementSync;

  /** @param now wall clock, ms */
  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#find = db.prepare('SELECT next_at FROM limits WHERE id = ?');
    this.#put = db.prepare('INSERT OR REPLACE INTO limits (id, next_at, idle_at) VALUES (?, ?, ?)');
    this.#removeIdle = db.prepare(
      'DELETE FROM limits WHERE id IN (SELECT id FROM limits WHERE idle_at < ? ORDER BY idle_at LIMIT ?)',
    );
  }

  charge(charges: readonly BucketCharge[]): ChargedBuckets {
    const now = this.#now();
    this.#removeIdle.run(now - IDLE_MS, REMOVED_AT_ONCE);
    const next = charges.map((charge) => {
      const stored = this.#find.get(charge.id) as { readonly next_at: number } | undefined;
      const after = nextAfter(charge, stored?.next_at, now);
      this.#put.run(charge.id, after, idleAt(charge, after));
      return after;
    });
    return { now, next };
  }
}
