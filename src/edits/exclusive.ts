import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { withFile } from '../files/atomic-write.ts';
import type { FileSystem } from '../files/file-system.ts';
import { LockedError, Locks } from '../files/lock.ts';
import { isDeadOwner } from '../store/owner.ts';
import { WriteFailedError } from './errors.ts';

/** @internal A file system, and who works on it. Tests put others in their place. */
export interface Worker {
  readonly files: FileSystem;
  /** A new one each time: two calls of one process exclude each other, too. */
  newOwner(): string;
  /** How long to wait for others, ms. */
  readonly waitMs?: number;
}

/** Longer than a lock of an unknown owner is respected: then the wait has an end that helps. */
const WAIT_MS = 75_000;
/** Who has done his work in this process, and could not let his lock go. */
const finished = new Set<string>();

const LOCK = 'apply';
const OWNER = '.owner';

/**
 * Does work that one process at a time may do. What a killed process held is taken over at once.
 * @param folder where the lock is, and nothing else
 * @throws {WriteFailedError} when somebody else does not let go
 * @internal
 */
export async function exclusively<T>(
  { files, newOwner, waitMs = WAIT_MS }: Worker,
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

/** Removes what killed processes left beside the lock. */
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

/** The file of a dead owner; or one that is being written, for so long that nobody writes it any more. */
async function isLeft(files: FileSystem, ownerFile: string): Promise<boolean> {
  const owner = (await files.readWhole(ownerFile)).toString();
  if (owner.endsWith(basename(ownerFile, OWNER))) return isGone(owner);
  return Date.now() - (await files.stamp(ownerFile)).changedAt > WAIT_MS;
}

/** Of a process in another container or on another host nobody here can tell whether it lives. */
function isNear(owner: string, other: string): boolean {
  const [ours, theirs] = [owner.split('|'), other.split('|')];
  return ours[1] !== '' && ours[2] !== '' && [0, 1, 2].every((i) => ours[i] === theirs[i]);
}

/** A killed process counts as dead at once, but one of its threads may still be within a write. */
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
