import { WriteConflictError } from './errors.ts';
import type { BaseChange } from './plan.ts';
import { quotedPath } from './root/paths.ts';
import type { LockOwner } from './root-lock.ts';
import { finishRewind, inRoot, thisWorker, transact } from './transaction.ts';
import type { ReadyUndo, UndoLog } from './undo-log.ts';
import type { UndoneFile } from './undo-manifest.ts';

/** The change of one file. */
export interface FileChange {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly change: 'created' | 'changed' | 'deleted';
  /** For an applied change: why a person should read it, because other programs execute or obey the file automatically. */
  readonly warning?: string;
}

/** The result of a rewind. */
export interface RewoundWrites {
  /** The changes of the rewind: a file that the apply created is deleted. */
  readonly files: readonly FileChange[];
}

/**
 * Undoes the newest apply: its files get back their exact bytes and permissions, and folders that were made for it are removed
 * if they are empty. A second call undoes the apply before it, up to the last 20.
 *
 * @param root the root of the apply
 * @throws {WRITE_CONFLICT} if a file has changed since `applyWrites`, or there is nothing to undo; nothing was changed
 * @throws {WRITE_FAILED} if the disk fails; the files are unchanged
 * @throws {WRITE_OUTSIDE_ROOT} if a folder has become a link since
 * @example
 * await applyWrites(response, { root: '.' });
 * await rewind('.'); // { files: [{ path: 'notes.txt', change: 'deleted' }] }
 */
export function rewind(root: string): Promise<RewoundWrites> {
  return rewindWith({ root, worker: thisWorker });
}

/** As `rewind`, by a worker of the caller. @param id the apply to undo; absent = the newest @internal */
export function rewindWith(
  place: { readonly root: string; readonly worker: LockOwner },
  id?: string,
): Promise<RewoundWrites> {
  const nothing = () => new WriteConflictError(nothingIn(place.root, id));
  const refuse = async () => {
    throw nothing();
  };
  return inRoot(place, refuse, async (session) => {
    const undo = await newest(session.log, id);
    if (!undo) throw nothing();
    const rewinding = await transact(session, inverseOf(session.log, undo), undo.ordinal);
    // If this fails, the next call completes it.
    if (rewinding) await finishRewind(session, rewinding, undo).catch(() => {});
    return {
      files: undo.manifest.files.map(({ path, before, after }) => changeOf(path, after, before?.version ?? null)),
    };
  });
}

/** Returns which files an undo changes, and how (added, changed, deleted). */
export function changesIn(files: readonly UndoneFile[]): FileChange[] {
  return files.map(({ path, before, after }) => changeOf(path, before?.version ?? null, after));
}

function changeOf(path: string, before: string | null, after: string | null): FileChange {
  if (before === null) return { path, change: 'created' };
  return { path, change: after === null ? 'deleted' : 'changed' };
}

async function newest(log: UndoLog, id: string | undefined): Promise<ReadyUndo | undefined> {
  const ready = (await log.all()).filter((undo): undo is ReadyUndo => undo.manifest !== undefined);
  return ready.findLast(({ manifest }) => id === undefined || manifest.id === id);
}

function inverseOf(log: UndoLog, undo: ReadyUndo): BaseChange[] {
  return undo.manifest.files.map(({ path, before, after }, i) => ({
    path,
    base: after,
    after: before?.version ?? null,
    bytes: () => log.oldBytes(undo, i),
    ...(before ? { mode: before.mode } : {}),
  }));
}

function nothingIn(root: string, id: string | undefined): string {
  if (id === undefined) return `there is nothing to rewind in ${quotedPath(root)}`;
  return `these writes can no longer be rewound in ${quotedPath(root)}: they were rewound, or 20 others were applied since`;
}
