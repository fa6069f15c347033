import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orAbsent, systemCode } from '../files/errors.ts';
import type { Executor, InterruptedRun, RunCheckpoint } from '../index.ts';
import { type SqliteStore, sqliteStore } from '../store/sqlite/index.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { FanOutConflictError } from './errors.ts';

const DATABASE = 'records.db';

/** The store of run records of one fan-out, from which unfinished models continue after a crash. */
export class Records {
  readonly store: Omit<SqliteStore, 'deliveries'>;
  readonly #dir: string;
  /** The ids of all runs that were found, also of those that are not continued. */
  readonly #ids = new Set<string>();

  constructor(path: string) {
    this.#dir = `${path}.runs`;
    // An answer that its file refused keeps the record: the next process continues it. So no mark of an end takes its place.
    const { deliveries: _, ...store } = sqliteStore({ path: join(this.#dir, DATABASE) });
    this.store = store;
  }

  /**
   * The newest record of each model that has one, by the id of its agent.
   * @param warn called for unreadable records: their model is not known
   */
  async listUnfinished(warn: (runId: string, error: unknown) => void): Promise<ReadonlyMap<string, string>> {
    const runs = new Map<string, string>();
    // A look makes no file: the first run does.
    if (!existsSync(join(this.#dir, DATABASE))) return runs;
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
   * Takes a record to continue it. The number of attempts does not matter: the caller has asked again.
   * @returns undefined if the record cannot be read: then the model starts again
   */
  async take(executor: Executor, runId: string): Promise<RunCheckpoint | undefined> {
    await executor.unpark(runId);
    return (await this.store.load(runId)) ?? undefined;
  }

  /**
   * Checks that the folder may hold the records of this fan-out.
   * @throws {FAN_OUT_CONFLICT} if the folder has other content, which would be lost
   * @throws errors of the system
   */
  async check(): Promise<void> {
    const names = await this.#names();
    if (!names.includes(DATABASE) && !names.every((name) => parts.includes(name))) {
      throw new FanOutConflictError(
        `${this.#dir} is for the records of this fan-out, but has other content; move the content, or use another path`,
      );
    }
  }

  /** Called before the first use. Files of others stay. */
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

  /** Called after the end of the fan-out: the records are no longer needed. */
  async remove(): Promise<void> {
    await this.store.close();
    await this.clear();
  }
}

/** The files of the store. A killed process leaves any of them. */
const parts: readonly string[] = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`];

const PAGE = 100;
