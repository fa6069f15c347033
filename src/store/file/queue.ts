import { safeName } from '../../files/names.ts';
import { PawlError } from '../../values/errors.ts';
import type { Access } from './access.ts';
import { storeError } from './errors.ts';
import type { RunFiles } from './run.ts';
import { type RunName, RunSession } from './session.ts';

/** More writes than this do not share a sync, so that the first of a flood need not wait for all. */
const MAX_GROUP = 512;

/** More runs than this are not written at once: each has a file open meanwhile. */
const MAX_AT_ONCE = 64;

interface Job {
  readonly runId: string;
  readonly work: (session: RunSession) => unknown;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
}

type Settled = { readonly job: Job; readonly value: unknown } | { readonly job: Job; readonly error: unknown };

interface Queue {
  readonly jobs: Job[];
  /** Resolves when the job that was asked for last has settled. */
  last: Promise<unknown>;
  /** Resolves when nothing is left to do, the lock included. */
  end: Promise<void>;
}

/**
 * The writes of this process, run by run: one group after the other, so that at most one sync of a run is under way, and
 * all writes that were asked for meanwhile share the next. Each settles on its own; one that is refused does not touch the
 * others.
 */
export class WriteQueues {
  readonly #access: Access;
  readonly #files: RunFiles;
  readonly #queues = new Map<string, Queue>();
  #free = MAX_AT_ONCE;
  readonly #waiting: (() => void)[] = [];

  constructor(access: Access, files: RunFiles) {
    this.#access = access;
    this.#files = files;
  }

  /** @param work throws errors of Pawl only before it changes the session */
  add<T>({ runId, name }: RunName, work: (session: RunSession) => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    const queue = this.#queues.get(name) ?? { jobs: [], last: Promise.resolve(), end: Promise.resolve() };
    const result = new Promise<T>((resolve, reject) => {
      queue.jobs.push({ runId, work, signal, resolve, reject });
    });
    queue.last = result;
    if (!this.#queues.has(name)) {
      this.#queues.set(name, queue);
      queue.end = this.#work(name, queue.jobs);
    }
    return result;
  }

  /** Resolves when the writes to a run (or to all) that were asked for before have settled. */
  async idle(name?: string): Promise<void> {
    const found = name === undefined ? [...this.#queues.values()] : [this.#queues.get(name)];
    for (const queue of found) await queue?.last.catch(() => {});
  }

  /** Resolves when nothing is under way any more. */
  async end(): Promise<void> {
    while (this.#queues.size > 0) await Promise.all([...this.#queues.values()].map((queue) => queue.end));
  }

  async #work(name: string, jobs: Job[]): Promise<void> {
    const { syncs } = this.#files;
    while (jobs.length > 0) {
      if (this.#free > 0) this.#free -= 1;
      else await new Promise<void>((resolve) => this.#waiting.push(resolve));
      syncs.enter();
      await this.#turn(name, jobs);
      syncs.leave();
      this.#leave();
    }
    this.#queues.delete(name);
  }

  /** Never rejects. */
  async #turn(name: string, jobs: Job[]): Promise<void> {
    let group: Job[] = [];
    try {
      await this.#access.lock(name);
      try {
        // Only now: whatever was asked for while we waited for the lock belongs to this group.
        group = jobs.splice(0, MAX_GROUP);
        await this.#perform(name, group);
      } finally {
        await this.#access.unlock(name);
      }
    } catch (error) {
      const reason = storeError(error, this.#files.folders.dir);
      for (const job of group.length > 0 ? group : jobs.splice(0)) job.reject(reason);
    }
  }

  /** @throws when the group failed as a whole, and none of it counts as written */
  async #perform(name: string, group: readonly Job[]): Promise<void> {
    const runId = group.find((job) => job.runId !== '')?.runId ?? '';
    const session = await RunSession.open(this.#files, { runId, name });
    const settled: Settled[] = [];
    for (const job of group) settled.push(await perform(job, session));
    await session.flush();
    for (const each of settled) {
      if ('error' in each) each.job.reject(each.error);
      else each.job.resolve(each.value as never);
    }
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

/** Of the runs that were named last: each step of a run asks for its name anew. */
const named = new Map<string, RunName>();
const MAX_NAMED = 1_000;

export function nameRun(runId: string): RunName {
  const known = named.get(runId);
  if (known) return known;
  const run = { runId, name: safeName(runId) };
  if (named.size >= MAX_NAMED) named.clear();
  named.set(runId, run);
  return run;
}

async function perform(job: Job, session: RunSession): Promise<Settled> {
  if (job.signal?.aborted) return { job, error: job.signal.reason };
  try {
    return { job, value: await job.work(session) };
  } catch (error) {
    if (error instanceof PawlError) return { job, error };
    throw error;
  }
}
