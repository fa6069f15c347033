import { rm } from 'node:fs/promises';
import { CheckpointCorruptError, type Executor, type InterruptedRun, type RunCheckpoint } from '../index.ts';
import { type FileStore, fileStore } from '../store/file.ts';

/** The records of the runs of one fan-out: they are what an unfinished model goes on from. */
export class Records {
  readonly store: FileStore;
  readonly #dir: string;
  /** Of all runs that were found, also of those that nobody goes on with. */
  readonly #ids = new Set<string>();

  constructor(path: string) {
    this.#dir = `${path}.runs`;
    this.store = fileStore({ dir: this.#dir });
  }

  /**
   * The newest record of each model that has one, by model id.
   * @param warn told of those that cannot be read: nobody knows whose they are
   */
  async unfinished(warn: (runId: string, error: unknown) => void): Promise<ReadonlyMap<string, string>> {
    const runs = new Map<string, string>();
    for (let page: readonly InterruptedRun[] = [], after = {}; ; ) {
      page = await this.store.listInterrupted({ limit: PAGE, ...after });
      for (const run of page) {
        this.#ids.add(run.runId);
        if (run.status === 'quarantined') warn(run.runId, new CheckpointCorruptError(run.reason));
        else runs.set(run.meta.agentId, run.runId);
      }
      const last = page.at(-1);
      if (page.length < PAGE || last?.updatedAt === undefined) return runs;
      after = { after: { updatedAt: last.updatedAt, runId: last.runId } };
    }
  }

  /** Whether an earlier process has left a run of this id. */
  has(runId: string): boolean {
    return this.#ids.has(runId);
  }

  /**
   * A record that may go on. However often its process has died: somebody has asked again.
   * @returns undefined when it cannot be read: then the model begins anew
   */
  async take(executor: Executor, runId: string): Promise<RunCheckpoint | undefined> {
    await executor.unpark(runId);
    return (await this.store.load(runId)) ?? undefined;
  }

  /** Before anything of it is used. */
  async clear(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Everything has come to its end: nothing of it is needed any more. */
  async remove(): Promise<void> {
    await this.store.close();
    await this.clear();
  }
}

const PAGE = 100;
