import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, rename } from 'node:fs/promises';
import { PawlError, type Person } from '../../index.ts';
import type { Warn } from '../../log/log.ts';
import { isStoredPerson } from '../../run/waits/wait.ts';
import { readProperty } from '../../values/error-data.ts';
import { isAmount, isCount, isObject } from '../../values/json.ts';
import type { FileAction } from '../fan-out-wire.ts';

/** What a person asks for. */
interface Asked {
  readonly action: FileAction['action'];
  readonly modelId: string;
  readonly by: Person | undefined;
}

/** The line that is written before an action. */
interface Begun extends FileAction {
  readonly v: 1;
  readonly id: string;
}

/** The line that is written after it. */
interface Ended {
  readonly v: 1;
  readonly id: string;
  readonly at: number;
  readonly end: 'done' | 'refused';
  readonly files?: number;
  /** Of the error that refused it. */
  readonly code?: string;
}

interface LogOptions {
  /** Wall clock, ms. */
  now(): number;
  /** Says that the end of an action was not recorded. */
  readonly warn: Warn;
}

/** So much of the end of the file is read, bytes. */
const READ_BYTES = 65_536;
/** A longer file is set aside, in place of the one that was set aside before, bytes. */
const MAX_BYTES = 1_048_576;
/** Most actions that are shown. */
const MOST_SHOWN = 20;

/**
 * Records who applied the changes of a fan-out, and who took them back: lines of JSON beside its checkpoint. An action has a line
 * before it begins and one at its end, so that an action of a process that was killed is there as well.
 */
export class AppliedLog {
  readonly #path: string;
  /** The file that was set aside. */
  readonly #old: string;
  readonly #options: LogOptions;

  /** @param checkpoint the path of the fan-out */
  constructor(checkpoint: string, options: LogOptions) {
    this.#path = `${checkpoint}.applied.jsonl`;
    this.#old = `${this.#path}.1`;
    this.#options = options;
  }

  /**
   * Runs an action between its two lines.
   * @throws {PawlError} WRITE_FAILED if the first line cannot be written: then nothing is changed @throws what the action throws
   */
  async during<T extends { readonly files: readonly unknown[] }>(asked: Asked, act: () => Promise<T>): Promise<T> {
    const { action, modelId, by } = asked;
    const id = randomUUID().slice(0, 8);
    const begun = { v: 1, id, at: this.#options.now(), action, modelId, ...(by ? { by } : {}) };
    const recorded = this.#rotate().then(() => this.#write(begun));
    await recorded.catch((cause: unknown) => {
      throw new PawlError('WRITE_FAILED', `${this.#path} cannot record who changes files; nothing was changed`, {
        cause,
      });
    });
    try {
      const done = await act();
      await this.#end(id, { end: 'done', files: done.files.length });
      return done;
    } catch (error) {
      const code = readProperty(error, 'code');
      await this.#end(id, { end: 'refused', ...(typeof code === 'string' ? { code } : {}) });
      throw error;
    }
  }

  /** Returns the last actions, the newest first. Damaged lines are left out. */
  async read(): Promise<readonly FileAction[]> {
    const actions = new Map<string, FileAction>();
    // The last line of the older file may have been cut.
    const text = `${await this.#tail(this.#old)}\n${await this.#tail(this.#path)}`;
    for (const line of text.split('\n')) {
      const entry = entryIn(line);
      if (!entry) continue;
      const { id, at } = entry;
      if ('action' in entry) {
        const { action, modelId, by } = entry;
        actions.set(id, { at, action, modelId, ...(by ? { by } : {}) });
      } else {
        const begun = actions.get(id);
        if (begun) actions.set(id, { ...begun, end: entry.end, files: entry.files ?? 0 });
      }
    }
    return [...actions.values()].slice(-MOST_SHOWN).reverse();
  }

  async #end(id: string, end: Pick<Ended, 'end' | 'files' | 'code'>): Promise<void> {
    const line: Ended = { v: 1, id, at: this.#options.now(), ...end };
    // The files are changed by now: the action must not look as if it had failed.
    await this.#write(line).catch((error: unknown) => {
      this.#options.warn('studio.log.incomplete', { path: this.#path, error });
    });
  }

  async #write(line: object): Promise<void> {
    const file = await openLog(this.#path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT);
    try {
      const { size } = await file.stat();
      // A process that was killed may have left a part of a line.
      const isWhole = size === 0 || (await bytesOf(file, size - 1, 1)) === '\n';
      await file.appendFile(`${isWhole ? '' : '\n'}${JSON.stringify(line)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Between two actions: both lines of one are in one file. */
  async #rotate(): Promise<void> {
    const { size = 0 } = (await lstat(this.#path).catch(() => undefined)) ?? {};
    if (size > MAX_BYTES) await rename(this.#path, this.#old);
  }

  async #tail(path: string): Promise<string> {
    const file = await openLog(path, constants.O_RDONLY).catch(() => undefined);
    try {
      const { size = 0 } = (await file?.stat()) ?? {};
      const from = Math.max(0, size - READ_BYTES);
      return file ? await bytesOf(file, from, size - from) : '';
    } finally {
      await file?.close();
    }
  }
}

/** A clone may have a link, or a pipe, of this name: neither is followed. */
async function openLog(path: string, flags: number): Promise<FileHandle> {
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const file = await open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0o600);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error('it is not a file');
}

async function bytesOf(file: FileHandle, position: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(length), position });
  return buffer.toString('utf8', 0, bytesRead);
}

function entryIn(line: string): Begun | Ended | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    if (!isObject(entry) || entry.v !== 1 || typeof entry.id !== 'string' || !isAmount(entry.at)) return undefined;
    return isBegun(entry) || isEnded(entry) ? (entry as unknown as Begun | Ended) : undefined;
  } catch {
    return undefined;
  }
}

function isBegun({ action, modelId, by }: Record<string, unknown>): boolean {
  const isKnown = action === 'apply' || action === 'take-back';
  return isKnown && typeof modelId === 'string' && (by === undefined || isStoredPerson(by));
}

function isEnded({ end, files = 0 }: Record<string, unknown>): boolean {
  return (end === 'done' || end === 'refused') && isCount(files);
}
