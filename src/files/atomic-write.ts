import { dirname } from 'node:path';
import { systemCode } from './errors.ts';
import type { FileSystem, OpenFile } from './file-system.ts';

/** A file system, and whether writes must survive a power loss. */
export interface Durable {
  readonly files: FileSystem;
  readonly isSynced: boolean;
  readonly folders: FolderSyncs;
  /** Returns the name of a file while it is written; default `unfinished`, which requires a lock. */
  readonly temporaryFor?: (path: string) => string;
}

/**
 * Returns the temporary name of a file while it is written. The writer holds the lock, so a file of this name was left by a
 * dead writer.
 */
export const unfinished = (path: string): string => `${path}.new`;

/**
 * Writes a file atomically: writes a file beside it, syncs it, renames it; the earlier file stays if that fails.
 * @param write gets the new, empty file
 */
export async function writeAtomically<T>(
  { files, isSynced, folders, temporaryFor = unfinished }: Durable,
  path: string,
  write: (file: OpenFile) => Promise<T>,
): Promise<T> {
  const temporary = temporaryFor(path);
  const writeAll = async (file: OpenFile) => {
    const written = await write(file);
    if (isSynced) await file.sync();
    return written;
  };
  try {
    const result = await withFile(createEmpty(files, temporary), writeAll);
    await files.rename(temporary, path);
    if (isSynced) await folders.sync(dirname(path));
    return result;
  } catch (error) {
    await files.remove(temporary).catch(() => {});
    throw error;
  }
}

async function createEmpty(files: FileSystem, path: string): Promise<OpenFile> {
  try {
    return await files.open(path, 'create');
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    await files.remove(path);
    return files.open(path, 'create');
  }
}

/** Calls `work` with an open file, and closes the file. */
export async function withFile<T>(opening: Promise<OpenFile>, work: (file: OpenFile) => Promise<T>): Promise<T> {
  const file = await opening;
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

/** Syncs folders to the disk after renames. Requests that arrive during a sync share the next one. */
export class FolderSyncs {
  readonly #files: FileSystem;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  constructor(files: FileSystem) {
    this.#files = files;
  }

  /** Resolves when the disk has all names that the folder has at the call. */
  sync(path: string): Promise<void> {
    const underWay = this.#underWay.get(path);
    if (!underWay) return this.#start(path);
    const waiting = this.#next.get(path);
    if (waiting) return waiting;
    const next = underWay.then(
      () => this.#start(path),
      () => this.#start(path),
    );
    this.#next.set(path, next);
    return next;
  }

  #start(path: string): Promise<void> {
    this.#next.delete(path);
    const syncing = this.#files.syncFolder(path).finally(() => {
      if (this.#underWay.get(path) === syncing) this.#underWay.delete(path);
    });
    this.#underWay.set(path, syncing);
    return syncing;
  }
}
