import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { orAbsent } from '../files/errors.ts';
import { diskFiles } from '../files/file-system.ts';
import { newOwner } from '../store/owner.ts';
import { WriteConflictError, WriteFailedError, WriteOutsideRootError } from './errors.ts';
import { hasPawlFolder, ownFolder, pawlFolderIn, removeUnused } from './pawl-folder.ts';
import { type BaseChange, planFor } from './plan.ts';
import { install, missingFolders, putBack, removeFolders, type Site } from './replace-files.ts';
import { Root } from './root/root.ts';
import { exclusively, type LockOwner } from './root-lock.ts';
import { type ReadyUndo, type Undo, UndoLog } from './undo-log.ts';

/** How many applies can be undone, one after the other. */
const MAX_UNDOS = 20;

/** The file system of this machine and this process, as the worker of apply and rewind. */
export const thisWorker: LockOwner = { files: diskFiles, newOwner };

/** A root that is locked by this call and has no incomplete work. */
interface Session extends Site {
  /** Makes names equal that the file system treats as the same. */
  fold(path: string): string;
}

/**
 * Opens a root under its lock, and works on it. First it restores the files after incomplete work of killed processes.
 * @param before for a root that Pawl has never used: throws, or returns a result, before anything is written there
 * @throws {WRITE_FAILED} and our own errors of the work
 */
export async function inRoot<T>(
  { root: path, worker }: { readonly root: string; readonly worker: LockOwner },
  before: (root: Root) => Promise<T | undefined>,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const root = await Root.open(path);
  let isMade = false;
  try {
    isMade = !(await hasPawlFolder(root));
    const early = isMade ? await before(root) : undefined;
    if (early !== undefined) return early;
    const folder = await pawlFolderIn(root);
    const locks = await ownFolder(folder, 'lock');
    return await exclusively(worker, locks, async () => {
      const log = new UndoLog(worker.files, await ownFolder(folder, 'undo'));
      const isFolding = (await orAbsent(lstat(join(folder, '.GITIGNORE')))) !== undefined;
      const fold = (each: string) => (isFolding ? each.normalize('NFC').toLowerCase() : each);
      await settle({ root, log }).catch(explain);
      return work({ root, log, fold });
    });
  } catch (error) {
    if (isMade) await removeUnused(root);
    throw isOwn(error) ? error : failed(error);
  }
}

/**
 * Makes all file changes with an undo, or none.
 * @param rewinds the undo that these changes undo
 * @returns what undoes them; undefined if there was nothing to change
 */
export async function transact(
  { root, log, fold }: Session,
  changes: readonly BaseChange[],
  rewinds?: number,
): Promise<ReadyUndo | undefined> {
  const plan = await planFor(root, changes, fold);
  if (plan.length === 0) return undefined;
  const undo = await log.begin(plan, await missingFolders(root, plan), rewinds);
  const placed = new Set<number>();
  try {
    await install({ root, log }, { undo, plan }, placed);
    return await log.write(undo, { ...undo.manifest, state: 'applied' });
  } catch (error) {
    await takeBack({ root, log }, { undo, placed, error });
    throw error;
  }
}

/** Removes the oldest undos beyond the limit. If this fails, the apply has still succeeded. */
export async function prune(log: UndoLog): Promise<void> {
  try {
    for (const undo of (await log.all()).slice(0, -MAX_UNDOS)) await log.discard(undo);
  } catch {
    // The next one tries again.
  }
}

/** Completes a rewind: deletes its own undo and the one that it undid. @param rewound if it still exists */
export async function finishRewind({ root, log }: Site, rewinding: Undo, rewound: Undo | undefined): Promise<void> {
  if (rewound?.manifest) await removeFolders(root, rewound.manifest.folders);
  if (rewound) await log.discard(rewound);
  await log.discard(rewinding);
}

/** Restores the files after incomplete work of killed processes, and finishes rewinds that were complete. */
async function settle(site: Site): Promise<void> {
  const all = await site.log.all();
  for (const undo of all) {
    if (!isReady(undo)) await site.log.discard(undo);
    else if (undo.manifest.state === 'applying') {
      await putBack(site, undo);
      await site.log.discard(undo);
    } else if (undo.manifest.rewinds !== undefined) {
      const rewound = all.find(({ ordinal }) => ordinal === undo.manifest.rewinds);
      await finishRewind(site, undo, rewound);
    }
  }
}

function explain(cause: unknown): never {
  if (isOwn(cause)) throw cause;
  const what = 'an earlier apply was interrupted, and the files cannot be restored';
  throw new WriteFailedError(`${what} (${messageOf(cause)}); nothing else was done, the next call tries again`, {
    cause,
  });
}

/**
 * Restores the files after a failed transaction.
 * @throws {WRITE_FAILED} if this fails, too: then the next call tries again
 */
async function takeBack(
  site: Site,
  { undo, placed, error }: { readonly undo: ReadyUndo; readonly placed: ReadonlySet<number>; readonly error: unknown },
): Promise<void> {
  try {
    // The manifest may say that all is done, if only the sync after it has failed.
    await site.log.write(undo, undo.manifest).catch(() => {});
    await putBack(site, undo, placed);
    await site.log.discard(undo);
  } catch (second) {
    const cause = new AggregateError([error, second]);
    const what = 'the writes failed, and the files could not be restored';
    const todo = `the next apply or rewind tries again; the old bytes are in ${undo.folder}`;
    throw new WriteFailedError(`${what} (${messageOf(error)}; ${messageOf(second)}); ${todo}`, { cause });
  }
}

function isReady(undo: Undo): undo is ReadyUndo {
  return undo.manifest !== undefined;
}

function isOwn(error: unknown): boolean {
  const own = [WriteFailedError, WriteConflictError, WriteOutsideRootError];
  return own.some((each) => error instanceof each);
}

function failed(cause: unknown): WriteFailedError {
  return new WriteFailedError(`the writes failed (${messageOf(cause)}); the files are unchanged`, { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
