import type { Lease } from '../rules/lease.ts';

/** The facts of a stored record that are known without reading its texts. Null: the row of its head is missing. */
export interface Stored {
  readonly no: number;
  readonly generation: number | null;
  readonly version: number | null;
  readonly revision: number | null;
  readonly message_count: number | null;
  /** Whether an open step is stored beside the head: 1 or 0. */
  readonly has_step: number;
  /** When its run is due: see `Due`. */
  readonly due_at: number | null;
  /** Whether its run has ended, so that the record is only kept: 1 or 0. */
  readonly has_ended: number;
}

/** The content of the tables for one run; `null` = none. */
interface Known {
  lease?: Lease | null;
  record?: Stored | null;
}

/** Most runs that are remembered: a further one removes the oldest. */
const MAX_KNOWN = 20_000;

/**
 * Remembers leases and revisions of the runs that a SQLite connection writes, so that a step need not read them before each
 * commit. It is valid until another connection commits, which SQLite counts (`data_version`), or a transaction of this
 * connection fails. The count is read inside a write transaction, when no other connection can commit, so it has no gap.
 */
export class KnownRuns {
  readonly #runs = new Map<string, Known>();
  #seen: unknown;
  #isUnsure = false;

  /** A write transaction has begun. Until `committed` nothing is certain. @param seen changes when another connection has committed */
  onBegun(seen: unknown): void {
    if (this.#isUnsure || seen !== this.#seen) this.#runs.clear();
    this.#seen = seen;
    this.#isUnsure = true;
  }

  onCommitted(): void {
    this.#isUnsure = false;
  }

  /** Undefined = not known. */
  lease(runId: string): Lease | null | undefined {
    return this.#runs.get(runId)?.lease;
  }

  /** Undefined = not known. */
  record(runId: string): Stored | null | undefined {
    return this.#runs.get(runId)?.record;
  }

  putLease(runId: string, lease: Lease | null): void {
    this.#of(runId).lease = lease;
  }

  putRecord(runId: string, record: Stored | null): void {
    this.#of(runId).record = record;
  }

  forget(runId: string): void {
    this.#runs.delete(runId);
  }

  forgetAll(): void {
    this.#runs.clear();
  }

  #of(runId: string): Known {
    const known = this.#runs.get(runId);
    if (known) return known;
    const fresh: Known = {};
    this.#runs.set(runId, fresh);
    const [oldest] = this.#runs.size > MAX_KNOWN ? this.#runs.keys() : [];
    if (oldest !== undefined) this.#runs.delete(oldest);
    return fresh;
  }
}
