import { setImmediate, setTimeout } from 'node:timers';
import { PawlError } from '../../values/errors.ts';
import type { RunDatabase } from './connection.ts';
import { isBusy, isIoError, storeError } from './errors.ts';
import type { Tables } from './writes.ts';

/** More writes than this do not share a transaction, so that a flood of them cannot block the event loop for long. */
const MAX_GROUP = 512;

interface Job {
  readonly work: (tables: Tables) => unknown;
  readonly signal: AbortSignal | undefined;
  readonly askedAt: number;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
}

type Settled = { readonly job: Job; readonly value: unknown } | { readonly job: Job; readonly error: unknown };

export interface QueueOptions {
  readonly path: string;
  /** How long a write waits for the lock of another process, ms. */
  readonly busyTimeoutMs: number;
}

/**
 * Collects the writes of one turn of the event loop and commits them together: one sync of the disk for all of them.
 * Each settles on its own; one that is refused, or that fails, does not touch the others.
 */
export class WriteQueue {
  readonly #database: RunDatabase;
  readonly #options: QueueOptions;
  #jobs: Job[] = [];
  #isScheduled = false;
  #retries = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: RunDatabase, options: QueueOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** @param work throws errors of Pawl only before it writes */
  add<T>(work: (tables: Tables) => T, signal?: AbortSignal): Promise<T> {
    const result = new Promise<T>((resolve, reject) => {
      this.#jobs.push({ work, signal, askedAt: performance.now(), resolve, reject });
    });
    this.#last = result.catch(() => {});
    this.#schedule();
    return result;
  }

  /** Resolves when all writes that were asked for before have settled. */
  async idle(): Promise<void> {
    await this.#last;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#jobs.length === 0) return;
    this.#isScheduled = true;
    if (this.#retries === 0) setImmediate(() => this.#flush());
    else setTimeout(() => this.#flush(), backoffMs(this.#retries));
  }

  #flush(): void {
    this.#isScheduled = false;
    const group = this.#jobs.splice(0, MAX_GROUP);
    try {
      this.#commit(group);
    } catch (error) {
      const isGroupFailure = isBusy(error) || isIoError(error) || error instanceof PawlError;
      if (isGroupFailure || group.length === 1) this.#settle(group, error);
      else this.#commitEach(group);
    }
    this.#schedule();
  }

  /** One transaction for all of them. @throws when it failed as a whole, and nothing was written */
  #commit(group: readonly Job[]): void {
    const { settled, known } = this.#database.get().transaction('write', ({ tables }) => {
      tables.known.begun();
      return { settled: group.map((job) => perform(job, tables)), known: tables.known };
    });
    known.committed();
    this.#retries = 0;
    for (const each of settled) {
      if ('error' in each) each.job.reject(each.error);
      else each.job.resolve(each.value as never);
    }
  }

  /** Something failed that nobody foresaw: each gets a transaction of its own, so that only the guilty one fails. */
  #commitEach(group: readonly Job[]): void {
    for (const [i, job] of group.entries()) {
      try {
        this.#commit([job]);
      } catch (error) {
        const isGroupFailure = isBusy(error) || isIoError(error);
        this.#settle(isGroupFailure ? group.slice(i) : [job], error);
        if (isGroupFailure) return;
      }
    }
  }

  #settle(group: readonly Job[], error: unknown): void {
    if (isBusy(error)) this.#wait(group, error);
    else this.#refuse(group, error);
  }

  /** Back to the front of the queue; the event loop goes on while another process holds the lock. */
  #wait(group: readonly Job[], error: unknown): void {
    this.#retries += 1;
    const oldest = performance.now() - this.#options.busyTimeoutMs;
    const late = group.filter((job) => job.askedAt <= oldest);
    this.#jobs = [...group.slice(late.length), ...this.#jobs];
    this.#refuse(late, error);
  }

  #refuse(group: readonly Job[], error: unknown): void {
    if (isIoError(error)) this.#database.drop();
    for (const job of group) job.reject(storeError(error, this.#options.path));
  }
}

function perform(job: Job, tables: Tables): Settled {
  if (job.signal?.aborted) return { job, error: job.signal.reason };
  try {
    return { job, value: job.work(tables) };
  } catch (error) {
    if (error instanceof PawlError) return { job, error };
    throw error;
  }
}

/** Doubles up to 200 ms, with jitter: processes that wait for one lock should not come back together. */
export function backoffMs(retries: number): number {
  return Math.min(200, 2 ** retries) * (0.5 + Math.random());
}
