import { WriteConflictError } from './errors.ts';
import type { Worker } from './exclusive.ts';
import type { UndoneFile } from './manifest.ts';
import type { Change } from './plan.ts';
import { quoted } from './root/paths.ts';
import { finishRewind, inRoot, thisWorker, transact } from './transaction.ts';
import type { ReadyUndo, UndoLog } from './undo-log.ts';

/** What has become of one file. */
export interface FileChange {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly change: 'created' | 'changed' | 'deleted';
  /** Of an applied change: why a person should read it, because other programs execute or obey that file by themselves. */
  readonly warning?: string;
}

/** What a rewind has done. */
export interface RewoundWrites {
  /** As the rewind saw it: what had been created is deleted. */
  readonly files: readonly FileChange[];
}

/**
 * Takes the newest applied answer back: its files are byte for byte what they were, also their permissions, and folders that
 * were made for it are gone when they are empty. Called again it takes back the one before, for the last 20.
 *
 * @param root the folder that was applied to
 * @throws {WriteConflictError} when a file is not what `applyWrites` left, or there is nothing to rewind; nothing was changed
 * @throws {WriteFailedError} when the disk refuses; the files are as they were before
 * @throws {WriteOutsideRootError} when a folder has become a link since
 * @example
 * await applyWrites(response, { root: '.' });
 * await rewind('.'); // { files: [{ path: 'notes.txt', change: 'deleted' }] }
 */
export function rewind(root: string): Promise<RewoundWrites> {
  return rewindWith({ root, worker: thisWorker });
}

/** As `rewind`, by a worker that the caller gives. @param id the one to take back; absent = the newest @internal */
export function rewindWith(
  place: { readonly root: string; readonly worker: Worker },
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
    // What is left of it now is finished by the next call at the latest.
    if (rewinding) await finishRewind(session, rewinding, undo).catch(() => {});
    return {
      files: undo.manifest.files.map(({ path, before, after }) => changeOf(path, after, before?.version ?? null)),
    };
  });
}

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

function inverseOf(log: UndoLog, undo: ReadyUndo): Change[] {
  return undo.manifest.files.map(({ path, before, after }, i) => ({
    path,
    base: after,
    after: before?.version ?? null,
    bytes: () => log.oldBytes(undo, i),
    ...(before ? { mode: before.mode } : {}),
  }));
}

function nothingIn(root: string, id: string | undefined): string {
  if (id === undefined) return `there is nothing to rewind in ${quoted(root)}`;
  return `these writes cannot be rewound any more in ${quoted(root)}: they were rewound, or 20 others were applied since`;
}
