import { lstat, mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orAbsent, systemCode } from '../files/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../files/private-modes.ts';
import { WriteFailedError, WriteOutsideRootError } from './errors.ts';
import { Root } from './root/root.ts';

/** The name of the folder in a root in which Pawl stores answers and undos. */
const PAWL_FOLDER = '.pawl';
const IGNORE_FILE = '.gitignore';

/**
 * Returns the folder `.pawl` of a root, where Pawl stores answers and undos; makes it if it does not exist. A `.gitignore`
 * in it prevents that they are committed by accident.
 * @returns its path
 * @throws {WRITE_OUTSIDE_ROOT} if it is a link @throws {WRITE_FAILED} if it cannot be made
 */
export async function pawlFolder(root: string): Promise<string> {
  return pawlFolderIn(await Root.open(root));
}

/** As `pawlFolder`, for a root that is open. */
export async function pawlFolderIn(root: Root): Promise<string> {
  const folder = await ownFolder(root.at, PAWL_FOLDER);
  try {
    await writeFile(join(folder, IGNORE_FILE), '*\n', { flag: 'wx', mode: PRIVATE_FILE });
  } catch (cause) {
    if (systemCode(cause) !== 'EEXIST') throw new WriteFailedError(`${folder} cannot be written`, { cause });
  }
  return folder;
}

/**
 * Makes a folder of Pawl's, and refuses a link of its name. A clone may contain a link of its name, which would lead our
 * writes elsewhere.
 */
export async function ownFolder(parent: string, name: string): Promise<string> {
  const folder = join(parent, name);
  try {
    // Only this user may read answers and old files. An existing folder keeps its permissions.
    await mkdir(folder, { mode: PRIVATE_FOLDER }).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error;
    });
    const stats = await lstat(folder);
    if (stats.isDirectory()) return folder;
    if (!stats.isSymbolicLink()) throw new WriteFailedError(`${folder} is not a folder; move it away`);
  } catch (cause) {
    if (cause instanceof WriteFailedError) throw cause;
    throw new WriteFailedError(`${folder} cannot be made`, { cause });
  }
  throw new WriteOutsideRootError(`${folder} is a link, and links are not followed; put a folder in its place`);
}

/** Returns whether a root has a folder `.pawl`. */
export async function hasPawlFolder(root: Root): Promise<boolean> {
  return (await orAbsent(lstat(join(root.at, PAWL_FOLDER)))) !== undefined;
}

/** Removes a folder `.pawl` that was made but not used. A folder with other content stays. */
export async function removeUnused(root: Root): Promise<void> {
  const folder = join(root.at, PAWL_FOLDER);
  try {
    const names = await readdir(folder);
    for (const name of names) if (name !== IGNORE_FILE) await rmdir(join(folder, name));
    await rm(join(folder, IGNORE_FILE), { force: true });
    await rmdir(folder);
  } catch {
    // It has other content.
  }
}
