import { lstat, mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orAbsent, systemCode } from '../files/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../files/file-system.ts';
import { WriteFailedError, WriteOutsideRootError } from './errors.ts';
import { Root } from './root/root.ts';

export const PAWL_FOLDER = '.pawl';
const IGNORE_FILE = '.gitignore';

/**
 * The folder in a root where Pawl keeps answers and what undoes their writes; made when it is not there. A `.gitignore` in it
 * sees to it that nobody commits them by accident.
 * @returns its path
 * @throws {WriteOutsideRootError} when it is a link @throws {WriteFailedError} when it cannot be made
 */
export async function pawlFolder(root: string): Promise<string> {
  return pawlFolderIn(await Root.open(root));
}

export async function pawlFolderIn(root: Root): Promise<string> {
  const folder = await ownFolder(root.at, PAWL_FOLDER);
  try {
    await writeFile(join(folder, IGNORE_FILE), '*\n', { flag: 'wx', mode: PRIVATE_FILE });
  } catch (cause) {
    if (systemCode(cause) !== 'EEXIST') throw new WriteFailedError(`${folder} cannot be written`, { cause });
  }
  return folder;
}

/** A folder of ours; what a clone brought along may be a link, through which we would write elsewhere. */
export async function ownFolder(parent: string, name: string): Promise<string> {
  const folder = join(parent, name);
  try {
    // Answers and old files are for nobody else's eyes. A folder that is there already stays as it is.
    await mkdir(folder, { mode: PRIVATE_FOLDER }).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error;
    });
    const stats = await lstat(folder);
    if (stats.isDirectory()) return folder;
    if (!stats.isSymbolicLink()) throw new WriteFailedError(`${folder} is no folder; move it away`);
  } catch (cause) {
    if (cause instanceof WriteFailedError) throw cause;
    throw new WriteFailedError(`${folder} cannot be made`, { cause });
  }
  throw new WriteOutsideRootError(`${folder} is a link, and links are not followed; put a folder in its place`);
}

/** Whether a root has a folder of Pawl's. */
export async function hasPawlFolder(root: Root): Promise<boolean> {
  return (await orAbsent(lstat(join(root.at, PAWL_FOLDER)))) !== undefined;
}

/** Takes a folder away again that was made for nothing. Whatever else is in it by now stays. */
export async function removeUnused(root: Root): Promise<void> {
  const folder = join(root.at, PAWL_FOLDER);
  try {
    const names = await readdir(folder);
    for (const name of names) if (name !== IGNORE_FILE) await rmdir(join(folder, name));
    await rm(join(folder, IGNORE_FILE), { force: true });
    await rmdir(folder);
  } catch {
    // It is of use to somebody.
  }
}
