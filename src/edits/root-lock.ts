import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { FileSystem } from '../files/file-system.ts';
import { withFile } from '../files/file-system.ts';
import { LockedError, Locks } from '../files/lock.ts';
import { isDeadOwner } from '../store/owner.ts';
import { WriteFailedError } from './errors.ts';

/** @internal A file system, and the owner of locks. Tests replace both. */
export interface LockOwner {
  readonly files: FileSystem;
  /** A new name each time: two calls of one process exclude each other, too. */
  newOwner(): string;
  /** How long to wait for others, ms. */
  readonly waitMs?: number;
}

/** Longer than a lock of an unknown owner is valid, so that the wait can succeed. */
const WAIT_MS = 75_000;
/** Owners of this process whose work is done, but whose lock could not be released. */
const finished = new Set<string>();

const LOCK = 'apply';
const OWNER = '.owner';

/**
 * Runs work under a root's lock, so that only one process at a time applies or undoes writes. The lock of a killed process
 * is taken over at once.
 * @param folder the folder of the lock, with no other files
 * @throws {WRITE_FAILED} if another process does not release the lock in time
 * @internal
 */
export async function exclusively<T>(
  { files, newOwner, waitMs = WAIT_MS }: LockOwner,
  folder: string,
  work: () => Promise<T>,
): Promise<T> {
  const owner = newOwner();
  const ownerFile = join(folder, `${owner.split('|').at(-1)}${OWNER}`);
  try {
    await withFile(files.open(ownerFile, 'create'), (file) => file.write(Buffer.from(owner), 0));
    const locks = new Locks(files, {
      folder,
      ownerFile,
      owner,
      isDead: isGone,
      isKnown: (other) => isNear(owner, other),
    });
    await locks.acquire(LOCK, waitMs).catch(explain);
    try {
      await sweep(files, folder, locks).catch(() => {});
      return await work();
    } finally {
      await locks.release(LOCK).catch(() => finished.add(owner));
    }
  } finally {
    await files.remove(ownerFile).catch(() => {});
  }
}

function explain(cause: unknown): never {
  if (!(cause instanceof LockedError)) throw cause;
  const what = 'another process is applying or rewinding writes in this root; nothing was written, try again later';
  throw new WriteFailedError(what, { cause });
}

/** Removes the files that killed processes left beside the lock. */
async function sweep(files: FileSystem, folder: string, locks: Locks): Promise<void> {
  for (const name of await files.names(folder)) {
    if (name === LOCK) continue;
    if (!name.endsWith(OWNER)) {
      if (await locks.inherit(name)) await locks.release(name);
    } else if (await isLeft(files, join(folder, name))) {
      await files.remove(join(folder, name));
    }
  }
}

/** Whether it is the file of a dead owner, or one whose writing began so long ago that its writer is dead. */
async function isLeft(files: FileSystem, ownerFile: string): Promise<boolean> {
  const owner = (await files.readWhole(ownerFile)).toString();
  if (owner.endsWith(basename(ownerFile, OWNER))) return isGone(owner);
  return Date.now() - (await files.readChangeTime(ownerFile)) > WAIT_MS;
}

/** Whether it is possible to check the owner: not if its process is in another container or on another host. */
function isNear(owner: string, other: string): boolean {
  const [ours, theirs] = [owner.split('|'), other.split('|')];
  return ours[1] !== '' && ours[2] !== '' && [0, 1, 2].every((i) => ours[i] === theirs[i]);
}

/** A killed process counts as dead at once, although one of its threads may still finish a write. */
function isGone(owner: string): boolean {
  if (finished.has(owner)) return true;
  if (!isDeadOwner(owner)) return false;
  const process = `/proc/${owner.split('|')[3]}`;
  try {
    const state = readFileSync(`${process}/stat`, 'utf8').split(') ').at(-1);
    return !state?.startsWith('Z') || readdirSync(`${process}/task`).length <= 1;
  } catch {
    return true;
  }
}
