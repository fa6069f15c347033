import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orAbsent, systemCode } from '../files/errors.ts';
import { diskFiles } from '../files/file-system.ts';
import { CheckpointCorruptError, type Executor, type InterruptedRun, type RunCheckpoint } from '../index.ts';
import { type FileStore, fileStoreOn } from '../store/file/file-store.ts';
import { FanOutConflictError } from './errors.ts';

/** The records of the runs of one fan-out: they are what an unfinished model goes on from. */
export class Records {
  readonly store: FileStore;
  readonly #dir: string;
  /** Of all runs that were found, also of those that nobody goes on with. */
  readonly #ids = new Set<string>();

  constructor(path: string) {
    this.#dir = `${path}.runs`;
    this.store = fileStoreOn(diskFiles, { dir: this.#dir });
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

  /** @throws {FanOutConflictError} when the folder is not ours: what is in it would be lost @throws the system's errors */
  async check(): Promise<void> {
    const names = await this.#names();
    if (!names.includes('layout') && !names.every((name) => parts.includes(name))) {
      throw new FanOutConflictError(
        `${this.#dir} would have the records of this fan-out, and has something else in it: move that away, or use another path`,
      );
    }
  }

  /** Before anything of it is used. What others have put there stays. */
  async clear(): Promise<void> {
    for (const name of parts) await rm(join(this.#dir, name), { recursive: true, force: true });
    await rmdir(this.#dir).catch((error: unknown) => {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')) throw error;
    });
  }

  async #names(): Promise<readonly string[]> {
    try {
      return (await orAbsent(readdir(this.#dir))) ?? [];
    } catch (error) {
      if (systemCode(error) === 'ENOTDIR') return [this.#dir];
      throw error;
    }
  }

  /** Everything has come to its end: nothing of it is needed any more. */
  async remove(): Promise<void> {
    await this.store.close();
    await this.clear();
  }
}

/** What a file store makes, the mark of its layout last: a process may have been killed before that. */
const parts: readonly string[] = ['runs', 'outcomes', 'mail', 'due', 'locks', 'owners', 'layout'];

const PAGE = 100;
