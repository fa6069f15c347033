import { closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { storeError } from '../../../sqlite/errors.ts';
import { StoreUnavailableError } from '../../../values/errors.ts';

/** Only this user may read what is copied. */
const [PRIVATE_FILE, PRIVATE_FOLDER] = [0o600, 0o700];

const SIDE_FILES = ['', '-wal', '-shm', '-journal'];

/**
 * Makes a new file beside its place, and gives it its name when `work` is done: no reader sees a part of it, and no file that
 * exists is overwritten.
 * @param work gets the path of an empty file
 * @throws {STORE_UNAVAILABLE} if the target exists
 */
export async function newFile<T>(target: string, work: (file: string) => Promise<T>): Promise<T> {
  const path = resolve(target);
  refuseExisting(path);
  const file = `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    closeSync(openSync(file, 'wx', PRIVATE_FILE));
    const result = await work(file);
    giveName(file, path);
    return result;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') refuseExisting(path);
    throw storeError(error, path);
  } finally {
    for (const suffix of SIDE_FILES) rmSync(file + suffix, { force: true });
  }
}

/** A link fails where a rename would overwrite a file that was made meanwhile. Some file systems have no links. */
function giveName(file: string, path: string): void {
  try {
    linkSync(file, path);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    refuseExisting(path);
    renameSync(file, path);
  }
}

function refuseExisting(path: string): void {
  const found = SIDE_FILES.map((suffix) => path + suffix).find((file) => existsSync(file));
  if (found === undefined) return;
  throw new StoreUnavailableError(`${found} exists, and is not overwritten; choose another path`);
}
