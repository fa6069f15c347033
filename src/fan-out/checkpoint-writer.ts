import { createStore } from '@xstate/store';
import type { FileSystem } from '../files/file-system.ts';
import { change, type Writable } from '../run/change.ts';
import { type Checkpoint, encodeFanOut, inOrder } from './checkpoint.ts';
import { readCheckpoint, writeText } from './checkpoint-file.ts';
import { FanOutConflictError } from './errors.ts';
import { FileClaim } from './file-claim.ts';
import type { Ranking } from './ranking.ts';
import type { ResponseSnapshot } from './snapshot.ts';
import { checkSnapshot, encodeSnapshot } from './snapshot-json.ts';

/** What a checkpoint file is about. */
export interface CheckpointSubject {
  readonly path: string;
  readonly prompt: string;
  readonly adapterIds: readonly string[];
  readonly verbose: boolean;
  /** Of a new file: a random text that names this fan-out. */
  readonly birth?: string;
}

interface CheckpointWriterOptions {
  readonly files: FileSystem;
  /** Wall clock, ms. */
  readonly now: () => number;
  /** Takes the file over from a writer of this process that was never closed. */
  readonly supersede?: boolean;
}

/** The content of a checkpoint file besides its subject. */
interface Turns {
  readonly newest: readonly ResponseSnapshot[];
  readonly ranking?: Ranking;
}

/** The newest turn of each model, and the judge's ranking. Only these transitions change them. */
function turnsStore() {
  return createStore({
    context: { newest: [] } as Turns,
    on: {
      put: (turns, { snapshot }: { snapshot: ResponseSnapshot }) =>
        change(turns, ({ newest }) => {
          const place = newest.findIndex(({ modelId }) => modelId === snapshot.modelId);
          newest[place === -1 ? newest.length : place] = snapshot as Writable<ResponseSnapshot>;
        }),
      rank: (turns, { ranking }: { ranking: Ranking }) =>
        change(turns, (draft) => {
          draft.ranking = ranking as Writable<Ranking>;
        }),
      /** The first turn of this process must not overwrite a newer turn of an earlier process. */
      takeIn: (turns, { found }: { found: Checkpoint }) =>
        change(turns, (draft) => {
          const known = new Set(draft.newest.map(({ modelId }) => modelId));
          const missing = found.responses.filter(({ modelId }) => !known.has(modelId));
          draft.newest.push(...(missing as Writable<ResponseSnapshot>[]));
          if (found.ranking) draft.ranking ??= found.ranking as Writable<Ranking>;
        }),
    },
  });
}

/**
 * Writes the newest turn of every model to a checkpoint file. Turns that arrive during a write share the next one: with many
 * models the file is written as often as the disk allows, not once for each turn.
 */
export class CheckpointWriter {
  readonly #subject: CheckpointSubject;
  readonly #options: CheckpointWriterOptions;
  readonly #turns = turnsStore();
  /** Encoded turns: most models have not changed since the last write. */
  readonly #texts = new WeakMap<ResponseSnapshot, string>();
  #claiming: Promise<FileClaim> | undefined;
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isNew = false;
  #birth: string | undefined;
  #isClosed = false;

  constructor(subject: CheckpointSubject, options: CheckpointWriterOptions) {
    this.#subject = subject;
    this.#birth = subject.birth;
    this.#options = options;
  }

  /**
   * Claims the file and reads it.
   * @throws {FAN_OUT_OWNED_ELSEWHERE} {FAN_OUT_CONFLICT} {CHECKPOINT_CORRUPT} {CHECKPOINT_TOO_NEW} {STORE_UNAVAILABLE}
   */
  async open(): Promise<void> {
    this.#claiming ??= this.#claim();
    try {
      await this.#claiming;
    } catch (error) {
      this.#claiming = undefined;
      throw error;
    }
  }

  /** The newest turn of a model, of this process or an earlier one. */
  newest(modelId: string): ResponseSnapshot | undefined {
    return this.#now.newest.find((snapshot) => snapshot.modelId === modelId);
  }

  /** Whether there was no file when it was claimed. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Names the fan-out of this file, in each process that continues it. */
  get birth(): string | undefined {
    return this.#birth;
  }

  /** A ranking is dropped when another model has answered since. */
  get ranking(): Ranking | undefined {
    const { newest, ranking } = this.#now;
    const answered = newest.filter(({ completed }) => completed);
    const ranked = new Set(ranking?.order);
    const isOfAll = ranked.size === answered.length && answered.every(({ modelId }) => ranked.has(modelId));
    return isOfAll ? ranking : undefined;
  }

  /**
   * Resolves when the file has this turn, or a newer one of its model.
   * @throws {TypeError} for an unknown model @throws {NOT_JSON} and the turn is ignored
   * @throws what `open` throws @throws {STORE_FULL} … and the next write includes the turn
   */
  put(snapshot: ResponseSnapshot): Promise<void> {
    const { modelId } = snapshot;
    if (!this.#subject.adapterIds.includes(modelId)) {
      return Promise.reject(new TypeError(`${JSON.stringify(modelId)} is not a model of this checkpoint`));
    }
    if (this.#isClosed) return Promise.reject(new TypeError(`the writer of ${this.#subject.path} is closed`));
    try {
      // A turn that cannot be stored must not block the turns of the other models.
      checkSnapshot(snapshot);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#turns.trigger.put({ snapshot });
    return this.flush();
  }

  rank(ranking: Ranking): Promise<void> {
    this.#turns.trigger.rank({ ranking });
    return this.flush();
  }

  /** Resolves when the file has all turns so far. */
  flush(): Promise<void> {
    if (!this.#writing) return this.#start();
    this.#next ??= this.#writing.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** The checkpoint as it is now. */
  checkpoint(): Checkpoint {
    const { prompt, adapterIds, verbose } = this.#subject;
    const responses = inOrder(this.#now.newest, adapterIds);
    const { ranking } = this;
    const chosen = ranking === undefined ? {} : { ranking };
    const named = this.#birth === undefined ? {} : { birth: this.#birth };
    return { version: 1, prompt, timestamp: this.#options.now(), adapterIds, responses, verbose, ...named, ...chosen };
  }

  /** Waits for the current write, and releases the file. Later calls of `put` are refused. @throws {STORE_UNAVAILABLE} … */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (this.#next ?? this.#writing)?.catch(() => {});
    await (await this.#claiming?.catch(() => undefined))?.release();
  }

  get #now(): Turns {
    return this.#turns.getSnapshot().context;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    const writing = this.#write().finally(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
    return writing;
  }

  async #write(): Promise<void> {
    await this.open();
    const claim = await this.#claiming;
    await claim?.during(() => {
      const text = encodeFanOut(this.checkpoint(), (snapshot) => this.#textOf(snapshot));
      return writeText(this.#options.files, this.#subject.path, text);
    });
  }

  #textOf(snapshot: ResponseSnapshot): string {
    const text = this.#texts.get(snapshot) ?? encodeSnapshot(snapshot);
    this.#texts.set(snapshot, text);
    return text;
  }

  async #claim(): Promise<FileClaim> {
    const { path } = this.#subject;
    const claim = await FileClaim.acquire(path, this.#options);
    try {
      const found = await readCheckpoint(this.#options.files, path);
      this.#isNew = found === null;
      if (found) this.#takeIn(found);
      return claim;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /**
   * Takes over the answers of a checkpoint file that was found.
   * @throws {FAN_OUT_CONFLICT} if the file belongs to another prompt, or to other models
   */
  #takeIn(found: Checkpoint): void {
    const { path, prompt, adapterIds } = this.#subject;
    const todo = 'use its prompt and models to continue it, or remove the file to start again';
    if (found.prompt !== prompt) {
      throw new FanOutConflictError(`${path} is an unfinished fan-out of another prompt: ${todo}`);
    }
    const stranger = found.responses.find(({ modelId }) => !adapterIds.includes(modelId));
    if (stranger) {
      throw new FanOutConflictError(`${path} has an answer of ${stranger.modelId}, which is not asked now: ${todo}`);
    }
    this.#birth = found.birth ?? this.#birth;
    this.#turns.trigger.takeIn({ found });
  }
}
