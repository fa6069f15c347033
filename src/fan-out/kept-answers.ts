import { rm } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { pawlFolder } from '../edits/pawl-folder.ts';
import { fileError } from '../files/errors.ts';
import { diskFiles } from '../files/file-system.ts';
import type { Clock, Executor, RunCheckpoint } from '../index.ts';
import { sha256 } from '../values/digest.ts';
import { hasCode } from '../values/error-data.ts';
import { type Checkpoint, encodeFanOut, type FanOutEnd } from './checkpoint.ts';
import { loadCheckpoint, writeText } from './checkpoint-file.ts';
import { type CheckpointSubject, CheckpointWriter } from './checkpoint-writer.ts';
import type { Ranking } from './ranking.ts';
import { Records } from './records.ts';
import { fromModelResponse, type ModelResponse, type ResponseSnapshot, toModelResponse } from './snapshot.ts';

const ANSWERS = 'answers.json';

/** The end of an earlier call, which the same call returns. */
export interface KeptEnd extends FanOutEnd {
  readonly responses: readonly ModelResponse[];
  readonly ranking?: Ranking;
  /** The file of answers. */
  readonly path: string;
}

/** What a call is asked for besides its subject, and how long its end is returned again. */
interface KeptRequest {
  readonly instructions: string;
  readonly keptMs: number;
}

/**
 * Saves the answers of a fan-out: in the checkpoint file until the end, with the records of unfinished runs beside it, and
 * then in the file of answers.
 */
export class KeptAnswers {
  readonly records: Records;
  readonly #subject: CheckpointSubject;
  readonly #writer: CheckpointWriter;
  readonly #home: string;
  readonly #clock: Clock;

  /**
   * @param root the folder that the models work on; the file of answers belongs to it
   * @throws {TypeError} if the path of the checkpoint is that of the file of answers
   */
  constructor(
    subject: CheckpointSubject,
    { root, clock }: { readonly root: string | undefined; readonly clock: Clock },
  ) {
    this.#subject = subject;
    this.#clock = clock;
    this.#writer = new CheckpointWriter(subject, { files: diskFiles, now: () => clock.now() });
    this.records = new Records(subject.path);
    this.#home = root ?? homeOf(subject.path);
    if (resolve(subject.path) === resolve(this.#home, '.pawl', ANSWERS)) {
      throw new TypeError(`${subject.path} is the file for the final answers; choose another path for the checkpoint`);
    }
  }

  /** Claims the file and reads it. @throws what `CheckpointWriter.open` throws */
  async open(): Promise<void> {
    // In the project's `.pawl` folder a checkpoint file is as private as the answers.
    const folder = dirname(resolve(this.#subject.path));
    if (basename(folder) === '.pawl') await this.#makePawlFolder(dirname(folder));
    await this.#writer.open();
    try {
      await this.records.check();
      // Records without a file belong to a fan-out that has ended: no call continues them.
      if (this.#writer.isNew) await this.records.clear();
    } catch (error) {
      throw fileError(error, this.#subject.path);
    }
  }

  async #makePawlFolder(project: string): Promise<void> {
    await diskFiles.makeFolder(project).catch((error: unknown) => {
      throw fileError(error, this.#subject.path);
    });
    await pawlFolder(project);
  }

  /**
   * The end of an earlier call of the same request and path. A checkpoint file is an unfinished fan-out, which goes first.
   * @returns undefined if no such end is kept @throws what `loadCheckpoint` throws
   */
  async findEnd({ instructions, keptMs }: KeptRequest): Promise<KeptEnd | undefined> {
    if (!this.#writer.isNew) return undefined;
    const path = join(this.#home, '.pawl', ANSWERS);
    const found = await loadCheckpoint(path);
    if (found?.end?.requestHash !== this.#requestHash(instructions)) return undefined;
    // After a clock was set back, an end of a far future must not be kept until then.
    const isKept = Math.abs(this.#clock.now() - Date.parse(String(found.end.endedAt))) < keptMs;
    return isKept && isWhole(found, this.#subject.adapterIds) ? { ...found.end, ...answersOf(found), path } : undefined;
  }

  /** The path is named from the folder of the answers, so that a folder may be moved. The order of the models does not matter. */
  #requestHash(instructions: string): string {
    const { path, prompt, adapterIds } = this.#subject;
    return sha256(JSON.stringify([relative(this.#home, path), prompt, [...adapterIds].sort(), instructions]));
  }

  /** Names the fan-out in each process that continues it. */
  get birth(): string | undefined {
    return this.#writer.birth;
  }

  get ranking(): Ranking | undefined {
    return this.#writer.ranking;
  }

  /** The answer of an earlier process, complete or not. */
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
   * The records of the runs that models may continue, by the ids of their agents.
   * @param warn called for damaged records: their models start again
   * @throws {STORE_UNAVAILABLE} … because models whose records are only unreachable must not be paid for twice
   */
  async listUnfinished(executor: Executor, warn: (runId: string, error: unknown) => void) {
    const found = new Map<string, RunCheckpoint>();
    for (const [agentId, runId] of await this.records.listUnfinished(warn)) {
      try {
        const record = await this.records.take(executor, runId);
        if (record) found.set(agentId, record);
      } catch (error) {
        if (!hasCode(error, 'CHECKPOINT_CORRUPT')) throw error;
        warn(runId, error);
      }
    }
    return found;
  }

  /**
   * The end of the call. If a model was interrupted, the checkpoint file stays for the next call; otherwise it becomes the
   * file of answers.
   * @param judged what there is of the judge
   * @returns the file that has the answers
   * @throws {STORE_FULL} {STORE_UNAVAILABLE} and the checkpoint file stays
   */
  async finish(responses: readonly ModelResponse[], { instructions, ranking, ...judged }: Finish): Promise<string> {
    const { path } = this.#subject;
    const puts = responses.map((response) => this.#writer.put(fromModelResponse(response)));
    if (ranking) puts.push(this.#writer.rank(ranking));
    await Promise.all(puts);
    if (responses.some(({ interrupted }) => interrupted)) return path;
    try {
      const answers = join(await pawlFolder(this.#home), ANSWERS);
      const end = { requestHash: this.#requestHash(instructions), endedAt: this.#clock.now(), ...judged };
      // What asks again from these answers is another fan-out.
      const { birth: _, ...checkpoint } = this.#writer.checkpoint();
      await writeText(diskFiles, answers, encodeFanOut({ ...checkpoint, end }));
      // After a crash here both files exist. The next call asks no model and removes the file.
      await rm(path, { force: true });
      await this.records.remove();
      return answers;
    } catch (error) {
      throw fileError(error, path);
    }
  }

  async close(): Promise<void> {
    await this.records.store.close();
    await this.#writer.close();
  }

  /** The answer of a model that an earlier call completed. */
  completed(modelId: string): ModelResponse | undefined {
    const snapshot = this.before(modelId);
    return snapshot?.completed ? toModelResponse(snapshot) : undefined;
  }
}

type Finish = Pick<KeptRequest, 'instructions'> &
  Pick<FanOutEnd, 'judgeError' | 'judgeUsage'> & { readonly ranking?: Ranking | undefined };

/**
 * Whether a file of answers has an end of each model. One in which no model has recorded anything is none: a first call without
 * a key must not keep others from asking.
 */
function isWhole({ responses }: Checkpoint, ids: readonly string[]): boolean {
  const ends = responses.filter(({ modelId, completed, error }) => {
    return ids.includes(modelId) && (completed || error !== undefined);
  });
  const hasRecorded = ends.some(({ completed, steps = 0, inputTokens, outputTokens }) => {
    return completed || steps + inputTokens + outputTokens > 0;
  });
  return ends.length === ids.length && hasRecorded;
}

function answersOf({ responses, ranking }: Checkpoint): Pick<KeptEnd, 'responses' | 'ranking'> {
  return { responses: responses.map(toModelResponse), ...(ranking ? { ranking } : {}) };
}

/** The folder that contains `.pawl`: for a checkpoint file inside `.pawl`, the parent of `.pawl`. */
function homeOf(path: string): string {
  const folder = dirname(resolve(path));
  return basename(folder) === '.pawl' ? dirname(folder) : folder;
}
