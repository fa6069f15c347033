import { safeName } from '../../files/safe-name.ts';
import { GroupCommit, giveAnswers, type Job, type Settled, settledLater } from '../group-commit.ts';
import { storeError } from './errors.ts';
import type { RunFiles, RunName } from './run-files.ts';
import { RunSession } from './session.ts';
import type { StoreFolder } from './store-folder.ts';

/** Most runs that are written at once: each has a file open meanwhile. */
const MAX_AT_ONCE = 64;

/** A task for a run, under its lock. */
interface Work {
  readonly runId: string;
  /** It is the only one of its commit. */
  readonly isAlone?: boolean;
  perform(session: RunSession): Promise<unknown>;
}

/**
 * Queues the writes of this process to a file store, run by run: one group after the other. At most one sync of a run is
 * running, and all writes in that time share the next one.
 */
export class WriteQueues {
  readonly #access: StoreFolder;
  readonly #files: RunFiles;
  readonly #commits = new GroupCommit<Work>({ perform: (take, name) => this.#perform(take, name) });
  #free = MAX_AT_ONCE;
  readonly #waiting: (() => void)[] = [];

  constructor(access: StoreFolder, files: RunFiles) {
    this.#access = access;
    this.#files = files;
  }

  /** Adds a write to the queue of its run. @param perform throws errors of Pawl only before it changes the session */
  add<T>({ runId, name }: RunName, perform: (session: RunSession) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#commits.add<T>({ runId, perform }, { key: name, signal });
  }

  /** As `add`, for a write that shares its commit with no other one. */
  addAlone<T>(
    { runId, name }: RunName,
    perform: (session: RunSession) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    return this.#commits.add<T>({ runId, perform, isAlone: true }, { key: name, signal });
  }

  /** Resolves when the earlier writes to a run (or to all) have settled. */
  idle(name?: string): Promise<void> {
    return this.#commits.idle(name);
  }

  /** Resolves when no work is left, the locks included. */
  end(): Promise<void> {
    return this.#commits.end();
  }

  async #perform(take: () => readonly Job<Work>[], name: string): Promise<void> {
    const { syncs, folders } = this.#files;
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    syncs.enter();
    try {
      await this.#access.lock(name);
      try {
        // Only now: requests during the wait for the lock belong to this group.
        for (const group of commitsOf(take())) await this.#commit(group, name);
      } finally {
        await this.#access.unlock(name);
      }
    } catch (error) {
      throw storeError(error, folders.dir);
    } finally {
      syncs.leave();
      this.#leave();
    }
  }

  /**
   * Performs a group of writes to one run, and commits them together.
   * @throws if the group failed as a whole, and none of it counts as written
   */
  async #commit(group: readonly Job<Work>[], name: string): Promise<void> {
    const runId = group.find(({ write }) => write.runId !== '')?.write.runId ?? '';
    const session = await RunSession.open(this.#files, { runId, name });
    const answers: Settled<Work>[] = [];
    for (const job of group) answers.push(await settledLater(job, (work) => work.perform(session)));
    await session.flush();
    giveAnswers(answers);
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

/** The writes of a group, commit by commit. */
function commitsOf(group: readonly Job<Work>[]): readonly (readonly Job<Work>[])[] {
  if (!group.some(({ write }) => write.isAlone)) return [group];
  const commits: Job<Work>[][] = [];
  for (const [i, job] of group.entries()) {
    const isShared = i > 0 && !job.write.isAlone && !group[i - 1]?.write.isAlone;
    if (isShared) commits.at(-1)?.push(job);
    else commits.push([job]);
  }
  return commits;
}

/** The names of recent runs: each step of a run needs its name again. */
const named = new Map<string, RunName>();
const MAX_NAMED = 1_000;

/** Returns the id of a run with the name of its folder. */
export function nameRun(runId: string): RunName {
  const known = named.get(runId);
  if (known) return known;
  const run = { runId, name: safeName(runId) };
  if (named.size >= MAX_NAMED) named.clear();
  named.set(runId, run);
  return run;
}
