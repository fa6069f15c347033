import { rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pawlFolder } from '../edits/pawl-folder.ts';
import { diskFiles } from '../files/file-system.ts';
import type { Clock, Executor, RunCheckpoint } from '../index.ts';
import { storeError } from '../store/file/errors.ts';
import { hasCode } from '../values/error-data.ts';
import { encodeCheckpoint } from './checkpoint.ts';
import { writeText } from './checkpoint-file.ts';
import { type CheckpointSubject, CheckpointWriter } from './checkpoint-writer.ts';
import type { Ranking } from './ranking.ts';
import { Records } from './records.ts';
import { fromModelResponse, type ModelResponse, type ResponseSnapshot, toModelResponse } from './snapshot.ts';

const ANSWERS = 'answers.json';

/**
 * Where the answers of a fan-out are kept: in the checkpoint file while it lasts, with the records of the unfinished runs
 * beside it, and at the end in the file of answers.
 */
export class KeptAnswers {
  readonly records: Records;
  readonly #subject: CheckpointSubject;
  readonly #writer: CheckpointWriter;
  readonly #home: string;

  /**
   * @param root the folder that the models work on; the file of answers belongs to it
   * @throws {TypeError} for a checkpoint file in the place of the file of answers
   */
  constructor(
    subject: CheckpointSubject,
    { root, clock }: { readonly root: string | undefined; readonly clock: Clock },
  ) {
    this.#subject = subject;
    this.#writer = new CheckpointWriter(subject, { files: diskFiles, now: () => clock.now() });
    this.records = new Records(subject.path);
    this.#home = root ?? homeOf(subject.path);
    if (resolve(subject.path) === resolve(this.#home, '.pawl', ANSWERS)) {
      throw new TypeError(`${subject.path} is where the answers go in the end: choose another path for the checkpoint`);
    }
  }

  /** Claims the file and reads it. @throws what `CheckpointWriter.open` throws */
  async open(): Promise<void> {
    // A checkpoint file in the folder of a project's own Pawl files is no more for others than the answers are.
    const folder = dirname(resolve(this.#subject.path));
    if (basename(folder) === '.pawl') await this.#makePawlFolder(dirname(folder));
    await this.#writer.open();
    try {
      await this.records.check();
      // Records without a file are of a fan-out that had come to its end: nobody goes on from them.
      if (this.#writer.isNew) await this.records.clear();
    } catch (error) {
      throw storeError(error, this.#subject.path);
    }
  }

  async #makePawlFolder(project: string): Promise<void> {
    await diskFiles.makeFolder(project).catch((error: unknown) => {
      throw storeError(error, this.#subject.path);
    });
    await pawlFolder(project);
  }

  get ranking(): Ranking | undefined {
    return this.#writer.ranking;
  }

  /** What an earlier process has of a model, completed or not. */
  before(modelId: string): ResponseSnapshot | undefined {
    return this.#writer.newest(modelId);
  }

  put(snapshot: ResponseSnapshot): Promise<void> {
    return this.#writer.put(snapshot);
  }

  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /**
   * The runs that models may go on with: by model id, the record.
   * @param warn told of records that are damaged: their models begin anew
   * @throws {StoreUnavailableError} … rather than to pay twice for what is only out of reach
   */
  async unfinished(executor: Executor, warn: (runId: string, error: unknown) => void) {
    const found = new Map<string, RunCheckpoint>();
    for (const [modelId, runId] of await this.records.unfinished(warn)) {
      try {
        const record = await this.records.take(executor, runId);
        if (record) found.set(modelId, record);
      } catch (error) {
        if (!hasCode(error, 'CHECKPOINT_CORRUPT')) throw error;
        warn(runId, error);
      }
    }
    return found;
  }

  /**
   * The end. Where somebody left off, the checkpoint file stays for the next call; otherwise it becomes the file of answers.
   * @returns the file that has the answers
   * @throws {StoreFullError} {StoreUnavailableError} and the checkpoint file stays
   */
  async finish(responses: readonly ModelResponse[], ranking: Ranking | undefined): Promise<string> {
    const { path } = this.#subject;
    const puts = responses.map((response) => this.#writer.put(fromModelResponse(response)));
    if (ranking) puts.push(this.#writer.rank(ranking));
    await Promise.all(puts);
    if (responses.some(({ interrupted }) => interrupted)) return path;
    try {
      const answers = join(await pawlFolder(this.#home), ANSWERS);
      await writeText(diskFiles, answers, encodeCheckpoint(this.#writer.checkpoint()));
      // A process that dies here leaves both, and the next call, which asks nobody, comes here again.
      await rm(path, { force: true });
      await this.records.remove();
      return answers;
    } catch (error) {
      throw storeError(error, path);
    }
  }

  async close(): Promise<void> {
    await this.records.store.close();
    await this.#writer.close();
  }

  /** The answers of a call that found nothing left to ask. */
  completed(modelId: string): ModelResponse | undefined {
    const snapshot = this.before(modelId);
    return snapshot?.completed ? toModelResponse(snapshot) : undefined;
  }
}

/** The folder that has `.pawl`: of a checkpoint file that lies in one, its parent. */
function homeOf(path: string): string {
  const folder = dirname(resolve(path));
  return basename(folder) === '.pawl' ? dirname(folder) : folder;
}
