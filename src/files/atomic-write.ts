import { dirname } from 'node:path';
import { systemCode } from './errors.ts';
import { type FileSystem, type OpenFile, withFile } from './file-system.ts';
import type { FolderSyncs } from './syncs.ts';

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
