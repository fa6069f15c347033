import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type DecideTurns, IDLE_MS, REMOVED_AT_ONCE } from '../../limits/buckets.ts';
import type { TakenTurns } from '../../limits/port.ts';

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

  charge(ids: readonly string[], decide: DecideTurns): TakenTurns {
    const now = this.#now();
    this.#removeIdle.run(now - IDLE_MS, REMOVED_AT_ONCE);
    const stored = new Map<string, number>();
    for (const id of ids) {
      const row = this.#find.get(id) as { readonly next_at: number } | undefined;
      if (row) stored.set(id, row.next_at);
    }
    const { buckets, ...taken } = decide(stored, now);
    for (const { id, next, idleAt } of buckets) this.#put.run(id, next, idleAt);
    return taken;
  }
}
