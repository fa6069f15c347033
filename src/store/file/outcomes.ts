import { join } from 'node:path';
import { type Durable, writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent, systemCode } from '../../files/errors.ts';
import { decodeLine, encodeLine } from '../../files/lines.ts';
import { safeName } from '../../files/safe-name.ts';
import { CheckpointCorruptError, PawlError } from '../../values/errors.ts';
import { parseStored } from '../encoding/encode.ts';
import { MINUTE_MS } from '../minutely.ts';
import type { Folders } from './folders.ts';
import { toNumber } from './journal/lines.ts';

export interface KeptOutcome {
  readonly runId: string;
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
  /** The run's epoch continues from here. */
  readonly epoch: number;
}

/** The kept outcomes in a file store: a file for each. Writers hold the lock of the run. */
export class OutcomeFiles {
  readonly #durable: Durable;
  readonly #folders: Folders;
  readonly #now: () => number;
  /** The folder of `due` that certainly exists. */
  #span: string | undefined;
  /** A note in it: a new name for a file is faster than a new file. */
  #note: string | undefined;

  constructor(durable: Durable, folders: Folders, now: () => number) {
    this.#durable = durable;
    this.#folders = folders;
    this.#now = now;
  }

  /** The kept outcome of a run, expired or not. @throws {CheckpointCorruptError} */
  async find(runId: string): Promise<KeptOutcome | undefined> {
    const found = await this.#read(safeName(runId));
    if (!found || found.runId === runId) return found;
    throw new CheckpointCorruptError(`the kept outcome of run ${runId} is damaged: it names the run ${found.runId}`);
  }

  isOver({ untilMs }: KeptOutcome): boolean {
    return untilMs <= this.#now();
  }

  async put(kept: KeptOutcome): Promise<void> {
    const { runId, text, untilMs, epoch } = kept;
    if (this.isOver(kept)) return this.remove(runId);
    const name = safeName(runId);
    await this.#noteDue(name, untilMs);
    const line = encodeLine('outcome', [untilMs, epoch, JSON.stringify(runId), text]);
    await writeAtomically(this.#durable, this.#folders.outcome(name), (file) => file.write(line, 0));
  }

  async remove(runId: string): Promise<void> {
    await this.#durable.files.remove(this.#folders.outcome(safeName(runId)));
  }

  /** The runs whose outcomes have expired by their notes, span by span. A span is removed after `visit`. */
  async eachDue(visit: (runIds: readonly string[]) => Promise<void>): Promise<void> {
    for await (const { folder, runIds } of this.#due()) {
      await visit(runIds);
      await this.#durable.files.removeFolder(folder);
    }
  }

  /** How many outcomes have expired by their notes. */
  async countDue(): Promise<number> {
    let count = 0;
    for await (const { runIds } of this.#due()) count += runIds.length;
    return count;
  }

  async *#due(): AsyncGenerator<{ readonly folder: string; readonly runIds: readonly string[] }> {
    const { files } = this.#durable;
    for (const span of (await orAbsent(files.names(this.#folders.due))) ?? []) {
      if (!(Number(span) <= this.#now())) continue;
      const folder = join(this.#folders.due, span);
      const runIds: string[] = [];
      for (const name of await files.names(folder)) {
        // A damaged one stays unchanged.
        const kept = await this.#read(name).catch(() => undefined);
        if (kept && this.isOver(kept)) runIds.push(kept.runId);
      }
      yield { folder, runIds };
    }
  }

  /** By the minute, and before the outcome: a note without an outcome does no harm. */
  async #noteDue(name: string, untilMs: number): Promise<void> {
    const end = Math.ceil(untilMs / MINUTE_MS) * MINUTE_MS;
    if (!Number.isSafeInteger(end)) return;
    const { files } = this.#durable;
    const folder = join(this.#folders.due, String(end));
    const note = join(folder, name);
    if (this.#span === folder && this.#note && (await this.#isLinked(this.#note, note))) return;
    if (this.#span !== folder) await files.makeFolder(folder);
    this.#span = folder;
    this.#note = note;
    try {
      await (await files.open(note, 'create')).close();
    } catch (error) {
      this.#span = undefined;
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }

  /**
   * A note has no content: another name of an existing one is enough. The number of names of a file is limited, and it may be
   * gone.
   */
  async #isLinked(note: string, name: string): Promise<boolean> {
    try {
      await this.#durable.files.link(note, name);
      return true;
    } catch (error) {
      return systemCode(error) === 'EEXIST';
    }
  }

  async #read(name: string): Promise<KeptOutcome | undefined> {
    const bytes = await orAbsent(this.#durable.files.readWhole(this.#folders.outcome(name)));
    if (bytes === undefined) return undefined;
    const line = decodeLine(bytes);
    const [until, epoch, runId = '', outcome = ''] = line?.fields ?? [];
    if (line?.kind !== 'outcome') {
      throw new CheckpointCorruptError(
        `the kept outcome ${this.#folders.outcome(name)} is damaged: its checksum is wrong`,
      );
    }
    const id = String(parseStored(runId, 'run id'));
    return { runId: id, text: outcome, untilMs: toNumber(until), epoch: toNumber(epoch) };
  }
}

/** Returns what was read; undefined if it is damaged. */
export async function undamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof PawlError) return undefined;
    throw error;
  }
}
