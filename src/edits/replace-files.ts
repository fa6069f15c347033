import { chmod, lstat, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { orAbsent, systemCode } from '../files/errors.ts';
import { type FileSystem, withFile } from '../files/file-system.ts';
import { versionOf } from './content-version.ts';
import { WriteConflictError, WriteOutsideRootError } from './errors.ts';
import { foldersAbove, type PlannedChange } from './plan.ts';
import { quotedPath } from './root/paths.ts';
import type { Root } from './root/root.ts';
import type { ReadyUndo, UndoLog } from './undo-log.ts';
import type { Manifest } from './undo-manifest.ts';

/** A root, and its undos. */
export interface Site {
  readonly root: Root;
  readonly log: UndoLog;
}

/** Returns the folders that must be made for the changed files, the uppermost first. */
export async function missingFolders(root: Root, plan: readonly PlannedChange[]): Promise<string[]> {
  const missing = new Set<string>();
  for (const { path, after } of plan) {
    if (after === null) continue;
    for (const folder of foldersAbove(path)) if (!(await root.folder(folder)).stats) missing.add(folder);
  }
  return [...missing];
}

/**
 * Replaces the files of a plan by new ones. All new bytes are on the disk before the first file is replaced.
 * @param placed gets the number of each file that may have changed
 */
export async function install(
  { root, log }: Site,
  { undo, plan }: { readonly undo: ReadyUndo; readonly plan: readonly PlannedChange[] },
  placed: Set<number>,
): Promise<void> {
  const { files } = log;
  const { manifest } = undo;
  for (const folder of manifest.folders) await files.makeFolder(join(root.at, folder), true);
  for (const [i, { path, after, before, mode, bytes }] of plan.entries()) {
    if (after === null) continue;
    const { at } = await root.file(path);
    const content = { bytes: await bytes(), mode: before?.mode ?? mode };
    await writeBeside(log.files, unfinishedOf(manifest, i, at), content);
  }
  for (const [i, { path, after, at, before }] of plan.entries()) {
    await lookAgain(root, path, before?.version ?? null);
    placed.add(i);
    if (after === null) await files.remove(at);
    else await files.rename(unfinishedOf(manifest, i, at), at);
  }
  await syncFolders(root, log.files, manifest);
}

/**
 * Restores the old files after an apply that did not complete. May itself be killed, and repeated.
 * @param placed the files that may have changed; absent = not known
 * @throws {WRITE_CONFLICT} if one of the files has changed since; then nothing was restored
 */
export async function putBack({ root, log }: Site, undo: ReadyUndo, placed?: ReadonlySet<number>): Promise<void> {
  const { files } = log;
  const { manifest } = undo;
  const changed: { readonly i: number; readonly at: string }[] = [];
  for (const [i, { path, before, after }] of manifest.files.entries()) {
    const { at } = await root.file(path).catch((cause: unknown) => {
      throw cause instanceof WriteOutsideRootError ? editedSince(path, undo, cause) : cause;
    });
    await files.remove(unfinishedOf(manifest, i, at)).catch(ignoreAbsentFolder);
    const bytes = placed && !placed.has(i) ? undefined : await root.read(path);
    const version = bytes ? versionOf(bytes) : null;
    if ((placed && !placed.has(i)) || version === (before?.version ?? null)) continue;
    if (version !== after) throw editedSince(path, undo);
    changed.push({ i, at });
  }
  for (const { i, at } of changed.reverse()) await restore(log, undo, { i, at });
  await removeFolders(root, manifest.folders);
  for (const folder of parentsOf(root, manifest)) await files.syncFolder(folder).catch(ignoreAbsentFolder);
}

/** Removes folders that were made for changed files and are empty now. A folder with other content stays. */
export async function removeFolders(root: Root, folders: readonly string[]): Promise<void> {
  for (const folder of folders.toReversed()) {
    try {
      await rmdir((await root.folder(folder)).at);
    } catch {
      // An empty folder that stays is no reason to fail.
    }
  }
}

async function restore(log: UndoLog, undo: ReadyUndo, { i, at }: { i: number; at: string }): Promise<void> {
  const { files } = log;
  const before = undo.manifest.files[i]?.before;
  if (!before) return files.remove(at);
  const bytes = await log.oldBytes(undo, i);
  const unfinished = unfinishedOf(undo.manifest, i, at);
  await writeBeside(log.files, unfinished, { bytes, mode: before.mode });
  await files.rename(unfinished, at);
}

/** Files may have changed between the check and the write. */
async function lookAgain(root: Root, path: string, version: string | null): Promise<void> {
  const bytes = await root.read(path);
  if ((bytes ? versionOf(bytes) : null) === version) return;
  throw new WriteConflictError(`${quotedPath(path)} was changed while the writes were applied; they were undone`);
}

/**
 * The file has its permissions from the beginning: other users must never be able to read it if they may not later. A new
 * file gets the usual permissions of this user, since it belongs to the project.
 */
async function writeBeside(
  files: FileSystem,
  path: string,
  { bytes, mode }: { readonly bytes: Uint8Array; readonly mode: number | undefined },
): Promise<void> {
  await withFile(files.open(path, mode === undefined ? 'create-shared' : 'create'), async (file) => {
    if (mode !== undefined) await chmod(path, mode);
    await file.write(bytes, 0);
    await file.sync();
  });
}

function unfinishedOf({ id }: Manifest, i: number, at: string): string {
  return join(dirname(at), `.pawl-${id}-${i}.new`);
}

async function syncFolders(root: Root, files: FileSystem, manifest: Manifest): Promise<void> {
  for (const folder of parentsOf(root, manifest)) if (await orAbsent(lstat(folder))) await files.syncFolder(folder);
}

/** The folders in which names have changed. */
function parentsOf(root: Root, { files, folders }: Manifest): Set<string> {
  return new Set([...files.map(({ path }) => path), ...folders].map((path) => dirname(join(root.at, path))));
}

function ignoreAbsentFolder(error: unknown): void {
  if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) throw error;
}

function editedSince(path: string, { folder }: ReadyUndo, cause?: unknown): WriteConflictError {
  return new WriteConflictError(
    `${quotedPath(path)} was changed after a process died while it applied writes, so they cannot be undone; ` +
      `compare the files with the old ones in ${folder}, then delete that folder to keep the files as they are`,
    { cause },
  );
}
