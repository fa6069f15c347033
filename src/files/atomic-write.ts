import { dirname } from 'node:path';
import { systemCode } from './errors.ts';
import { type FileSystem, type OpenFile, withFile } from './file-system.ts';

interface AtomicWrite {
  readonly files: FileSystem;
  /** Returns the name of a file while it is written; default `unfinished`, which requires a lock. */
  readonly temporaryFor?: (path: string) => string;
}

/** The writer holds the lock, so a file of this name was left by a dead writer. */
const unfinished = (path: string): string => `${path}.new`;

/**
 * Writes a file atomically: writes a file beside it, syncs it, renames it; the earlier file stays if that fails.
 * @param write gets the new, empty file
 */
export async function writeAtomically<T>(
  { files, temporaryFor = unfinished }: AtomicWrite,
  path: string,
  write: (file: OpenFile) => Promise<T>,
): Promise<T> {
  const temporary = temporaryFor(path);
  const writeAll = async (file: OpenFile) => {
    const written = await write(file);
    await file.sync();
    return written;
  };
  try {
    const result = await withFile(createEmpty(files, temporary), writeAll);
    await files.rename(temporary, path);
    await files.syncFolder(dirname(path));
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
