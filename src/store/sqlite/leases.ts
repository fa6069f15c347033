import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Lease } from '../rules/lease.ts';
import type { LeaseClock } from '../rules/lease-clock.ts';
import type { KnownRuns } from './known-runs.ts';

interface LeaseRow {
  readonly owner: string | null;
  readonly epoch: number;
  readonly attempts: number;
  readonly expires_at: number;
  readonly boot: string;
  readonly deployment: number | null;
}

/**
 * The leases in SQLite: the rows of `claims`. A released one stays, without an owner, because epoch and attempts continue.
 */
export class LeaseTable {
  readonly #clock: LeaseClock;
  readonly #known: KnownRuns;
  readonly #find: StatementSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #sweep: StatementSync;
  #isSwept = false;

  constructor(db: DatabaseSync, clock: LeaseClock, known: KnownRuns) {
    this.#clock = clock;
    this.#known = known;
    this.#find = db.prepare('SELECT owner, epoch, attempts, expires_at, boot, deployment FROM claims WHERE run_id = ?');
    this.#put = db.prepare(
      'INSERT OR REPLACE INTO claims (run_id, owner, epoch, attempts, expires_at, boot, deployment) VALUES (?, ?, ?, ?, ?, ?, ?)',
    );
    this.#remove = db.prepare('DELETE FROM claims WHERE run_id = ?');
    this.#sweep = db.prepare('DELETE FROM claims WHERE owner IS NULL AND run_id NOT IN (SELECT run_id FROM runs)');
  }

  now(): number {
    return this.#clock.now();
  }

  find(runId: string): Lease | undefined {
    const known = this.#known.lease(runId);
    if (known !== undefined) return known ?? undefined;
    const row = this.#find.get(runId) as unknown as LeaseRow | undefined;
    const lease = row && this.toLease(row);
    this.#known.putLease(runId, lease ?? null);
    return lease;
  }

  toLease({ owner, epoch, attempts, expires_at, boot, deployment }: LeaseRow): Lease {
    const expiresAt = boot === this.#clock.boot ? expires_at : Number.NEGATIVE_INFINITY;
    return { owner, epoch, attempts, expiresAt, ...(deployment === null ? {} : { deployment }) };
  }

  put(runId: string, lease: Lease): void {
    const { owner, epoch, attempts, expiresAt, deployment = null } = lease;
    this.#put.run(runId, owner, epoch, attempts, expiresAt, this.#clock.boot, deployment);
    this.#known.putLease(runId, lease);
  }

  remove(runId: string): void {
    this.#remove.run(runId);
    this.#known.forget(runId);
  }

  /** Once per connection: removes released claims of runs without a record; no other code removes them. */
  sweep(): void {
    if (this.#isSwept) return;
    this.#isSwept = true;
    this.#sweep.run();
    this.#known.forgetAll();
  }
}
