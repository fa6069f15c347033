import { PawlError } from '../values/error-codes.ts';

/** Most writes of a group, so that a flood of them cannot delay the first. */
const MAX_GROUP = 512;

/** A write that waits for its group, or belongs to one. */
export interface Job<W> {
  readonly write: W;
  readonly signal: AbortSignal | undefined;
  /** When it was requested, on the clock of `performance.now()`. */
  readonly askedAt: number;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** The result of a job once its group is durable: an answer, or why it was refused. */
export type Settled<W> = { readonly job: Job<W> } & ({ readonly value: unknown } | { readonly error: unknown });

export interface GroupCommitOptions<W> {
  /**
   * Performs one group: takes its jobs when it begins, and settles them when they are durable. An error rejects the jobs that
   * it took, or all waiting jobs if it took none.
   * @param take returns the waiting jobs, the oldest first; later jobs belong to the next group
   */
  perform(take: () => readonly Job<W>[], key: string): Promise<void> | void;
  /** Resolves when a group may begin; absent = at once. @param count returns how many jobs wait */
  begin?(key: string, count: () => number): Promise<void>;
}

/** The queue of a job, and its cancellation. */
export interface JobOptions {
  /** Jobs of one key are grouped, and performed in order. Default: one key for all. */
  readonly key?: string | undefined;
  /** Aborted before its group begins = the job is refused. */
  readonly signal?: AbortSignal | undefined;
}

interface Queue<W> {
  jobs: Job<W>[];
  /** Settles with the newest job. */
  last?: Promise<unknown>;
  /** Resolves when no job is left. */
  end?: Promise<void>;
}

/**
 * Groups waiting writes, so that they share one commit: one group after the other for each key, in the order of the calls.
 * Each write settles on its own.
 */
export class GroupCommit<W> {
  readonly #options: GroupCommitOptions<W>;
  readonly #queues = new Map<string, Queue<W>>();

  constructor(options: GroupCommitOptions<W>) {
    this.#options = options;
  }

  add<T>(write: W, { key = '', signal }: JobOptions = {}): Promise<T> {
    const found = this.#queues.get(key);
    const queue: Queue<W> = found ?? { jobs: [] };
    const result = new Promise<T>((resolve, reject) => {
      const settle = resolve as (value: unknown) => void;
      queue.jobs.push({ write, signal, askedAt: performance.now(), resolve: settle, reject });
    });
    queue.last = result;
    if (!found) {
      this.#queues.set(key, queue);
      queue.end = this.#work(key, queue);
    }
    return result;
  }

  /** Resolves when the earlier writes have settled: those of one key, or all. */
  async idle(key?: string): Promise<void> {
    const found = key === undefined ? [...this.#queues.values()] : [this.#queues.get(key)];
    for (const queue of found) await queue?.last?.catch(() => {});
  }

  /** Resolves when no work is running any more. */
  async end(): Promise<void> {
    while (this.#queues.size > 0) await Promise.all([...this.#queues.values()].map(({ end }) => end));
  }

  /** Never rejects. */
  async #work(key: string, queue: Queue<W>): Promise<void> {
    while (queue.jobs.length > 0) {
      let group: readonly Job<W>[] = [];
      const take = () => {
        group = queue.jobs.splice(0, MAX_GROUP);
        return group;
      };
      try {
        await this.#options.begin?.(key, () => queue.jobs.length);
        // A group that is done already is not awaited: each step of a run has a group.
        const performing = this.#options.perform(take, key);
        if (performing) await performing;
      } catch (error) {
        for (const job of group.length > 0 ? group : queue.jobs.splice(0)) job.reject(error);
      }
    }
    this.#queues.delete(key);
  }
}

/**
 * Performs one job of a group. Its refusal (an aborted signal, an error of Pawl) is its own; any other error fails the group.
 * @param work throws errors of Pawl only before any change
 */
export function settled<W>(job: Job<W>, work: (write: W) => unknown): Settled<W> {
  if (job.signal?.aborted) return { job, error: job.signal.reason };
  try {
    return { job, value: work(job.write) };
  } catch (error) {
    return refusal(job, error);
  }
}

/** Performs one asynchronous job of a group. */
export async function settledLater<W>(job: Job<W>, work: (write: W) => Promise<unknown>): Promise<Settled<W>> {
  if (job.signal?.aborted) return { job, error: job.signal.reason };
  try {
    return { job, value: await work(job.write) };
  } catch (error) {
    return refusal(job, error);
  }
}

function refusal<W>(job: Job<W>, error: unknown): Settled<W> {
  if (error instanceof PawlError) return { job, error };
  throw error;
}

/** Settles the jobs of a group with their answers. */
export function giveAnswers<W>(group: readonly Settled<W>[]): void {
  for (const each of group) {
    if ('error' in each) each.job.reject(each.error);
    else each.job.resolve(each.value);
  }
}
