import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy, isIoError, storeError } from '../../sqlite/errors.ts';
import { backoffMs, lockBackoff } from '../../values/backoff.ts';
import { PawlError } from '../../values/error-codes.ts';
import { GroupCommit, giveAnswers, type Job, settled } from '../group-commit.ts';
import type { RunDatabase } from './connection.ts';
import type { Tables } from './writes.ts';

export interface QueueOptions {
  readonly path: string;
  /** How long a write waits for the lock of another process, ms. */
  readonly busyTimeoutMs: number;
  readonly isReadOnly: boolean;
}

/** A task inside a transaction. */
interface Work {
  /** Throws errors of Pawl only before it writes. */
  readonly make: (tables: Tables) => unknown;
  /** A loss of power may undo it: a group of such tasks does not wait for the disk. */
  readonly isPassing: boolean;
}

/** A group waits at most so long, ms, for more writes. */
const GATHER_MS = 100;

/**
 * Resolves after one turn of the event loop for a write that comes alone, and for several when a turn has brought no other. A
 * thousand runs take many turns until each has had one, and the sync of a commit costs as much as many writes.
 */
function gather(count: () => number): Promise<void> {
  const until = performance.now() + GATHER_MS;
  return new Promise((resolve) => {
    const look = (before: number) => {
      setImmediate(() => {
        const waiting = count();
        if (waiting > before && performance.now() < until) look(waiting);
        else resolve();
      });
    };
    look(1);
  });
}

/** Commits the writes to SQLite of one turn of the event loop together: one sync of the disk for all of them. */
export class WriteQueue {
  readonly #database: RunDatabase;
  readonly #options: QueueOptions;
  readonly #commits = new GroupCommit<Work>({
    begin: (_, count) => gather(count),
    perform: (take) => this.#perform(take()),
  });

  constructor(database: RunDatabase, options: QueueOptions) {
    this.#database = database;
    this.#options = options;
  }

  add<T>(make: (tables: Tables) => T, signal?: AbortSignal): Promise<T> {
    return this.#commits.add<T>({ make, isPassing: false }, { signal });
  }

  /** Like `add`; but a loss of power may undo the write. */
  addPassing<T>(make: (tables: Tables) => T, signal?: AbortSignal): Promise<T> {
    return this.#commits.add<T>({ make, isPassing: true }, { signal });
  }

  /** Resolves when all earlier writes have settled. */
  idle(): Promise<void> {
    return this.#commits.idle();
  }

  /** Commits a group. @returns undefined = all are settled */
  #perform(group: readonly Job<Work>[]): Promise<void> | undefined {
    const waiting = this.#tryCommit(group);
    return waiting.length > 0 ? this.#retry(waiting) : undefined;
  }

  /** Waits while another process holds the lock; the event loop continues meanwhile. */
  async #retry(group: readonly Job<Work>[]): Promise<void> {
    let waiting = group;
    for (let retries = 1; waiting.length > 0; retries++) {
      await sleep(backoffMs(retries, lockBackoff));
      waiting = this.#tryCommit(waiting);
    }
  }

  /** Commits a group once. @returns the jobs that wait for the lock; the others are settled */
  #tryCommit(group: readonly Job<Work>[]): readonly Job<Work>[] {
    try {
      this.#commit(group);
      return [];
    } catch (error) {
      return this.#left(group, error);
    }
  }

  /** One transaction for all of them. @throws if it failed as a whole, and nothing was written */
  #commit(group: readonly Job<Work>[]): void {
    const kind = group.every(({ write }) => write.isPassing) ? 'passing' : 'write';
    const { answers, known } = this.#database.get().transaction(kind, ({ tables }, othersCommits) => {
      tables.known.onBegun(othersCommits);
      return { answers: group.map((job) => settled(job, ({ make }) => make(tables))), known: tables.known };
    });
    known.onCommitted();
    giveAnswers(answers);
  }

  /** Settles the jobs that can be settled after a failure. @returns those that wait for the lock */
  #left(group: readonly Job<Work>[], error: unknown): readonly Job<Work>[] {
    if (isBusy(error)) return this.#notLate(group, error);
    if (isIoError(error) || error instanceof PawlError || group.length === 1) {
      this.#refuse(group, error);
      return [];
    }
    return this.#commitEach(group);
  }

  /** An unforeseen failure: each job gets a transaction of its own, so that only the one at fault fails. */
  #commitEach(group: readonly Job<Work>[]): readonly Job<Work>[] {
    for (const [i, job] of group.entries()) {
      try {
        this.#commit([job]);
      } catch (error) {
        if (isBusy(error)) return this.#notLate(group.slice(i), error);
        const failed = isIoError(error) ? group.slice(i) : [job];
        this.#refuse(failed, error);
        if (failed.length > 1) return [];
      }
    }
    return [];
  }

  #notLate(group: readonly Job<Work>[], error: unknown): readonly Job<Work>[] {
    const oldest = performance.now() - this.#options.busyTimeoutMs;
    const isLate = (job: Job<Work>) => job.askedAt <= oldest;
    this.#refuse(group.filter(isLate), error);
    return group.filter((job) => !isLate(job));
  }

  #refuse(group: readonly Job<Work>[], error: unknown): void {
    if (isIoError(error)) this.#database.drop();
    for (const job of group) job.reject(storeError(error, this.#options.path));
  }
}
