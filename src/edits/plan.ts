import { versionOf } from './content-version.ts';
import { WriteConflictError } from './errors.ts';
import type { WriteSnapshot } from './proposed-write.ts';
import { quotedPath } from './root/paths.ts';
import type { FilePlace, Root } from './root/root.ts';

/** A change to one file. */
export interface BaseChange {
  readonly path: string;
  /** The SHA-256 of the new bytes; null = the file is deleted. */
  readonly after: string | null;
  /** The new bytes. */
  bytes(): Promise<Uint8Array>;
  /** Permissions of a new file; an existing file keeps its own. */
  readonly mode?: number;
  /** The required current version; absent = any. */
  readonly base?: string | null;
}

/** A possible change, and the file that it was checked against. */
export interface PlannedChange extends BaseChange, Pick<FilePlace, 'at'> {
  readonly before: { readonly version: string; readonly mode: number } | null;
}

/**
 * Converts proposed writes into file changes: path, new bytes, version before and after.
 * @throws {TypeError} if it is not a list of writes
 */
export function changesOf(writes: readonly WriteSnapshot[]): BaseChange[] {
  return writes.map(({ path, content, delete: isDeletion, base }) => {
    const isText = typeof content === 'string' && content.isWellFormed();
    if (!isText || !['string', 'object', 'undefined'].includes(typeof base)) {
      throw new TypeError(
        `the proposed write to ${quotedPath(String(path))} has no text as its content, or no version as its base`,
      );
    }
    const bytes = Buffer.from(content);
    return {
      path,
      after: isDeletion ? null : versionOf(bytes),
      bytes: async () => bytes,
      ...(base === undefined ? {} : { base }),
    };
  });
}

/**
 * Checks whether all file changes can be made, and leaves out those that change nothing.
 * @param fold makes names equal that the file system treats as the same
 * @throws {WRITE_OUTSIDE_ROOT} @throws {WRITE_CONFLICT} and nothing was written
 */
export async function planFor(
  root: Root,
  changes: readonly BaseChange[],
  fold = (path: string) => path,
): Promise<readonly PlannedChange[]> {
  const planned: PlannedChange[] = [];
  const conflicts: string[] = [];
  for (const change of changes) {
    const { path, at, stats } = await root.file(change.path);
    const bytes = await root.read(path);
    const before = bytes && stats ? { version: versionOf(bytes), mode: stats.mode & 0o7777 } : null;
    const version = before?.version ?? null;
    if (change.base !== undefined && change.base !== version) conflicts.push(path);
    planned.push({ ...change, path, at, before });
  }
  refuseOverlaps(planned.map(({ path }) => fold(path)));
  if (conflicts.length === 0) return planned.filter(({ before, after }) => after !== (before?.version ?? null));
  const what = conflicts.length === 1 ? 'has changed' : 'have changed';
  throw new WriteConflictError(
    `${listed(conflicts)} ${what} since this change was proposed; nothing was written. Restore the earlier content, or ask again`,
  );
}

function refuseOverlaps(paths: readonly string[]): void {
  const seen = new Set<string>();
  for (const path of paths) {
    if (seen.has(path))
      throw new WriteConflictError(`two changes are for ${quotedPath(path)}; nothing was written, keep one`);
    seen.add(path);
  }
  for (const path of paths) {
    const above = foldersAbove(path).find((folder) => seen.has(folder));
    if (above === undefined) continue;
    throw new WriteConflictError(
      `${quotedPath(above)} would be a file, and also a folder with ${quotedPath(path)} in it; keep one`,
    );
  }
}

/** Returns the parent folders of a path, the uppermost first. */
export function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}

function listed(paths: readonly string[]): string {
  const most = 10;
  const rest = paths.length > most ? ` and ${paths.length - most} more` : '';
  return `${paths.slice(0, most).map(quotedPath).join(', ')}${rest}`;
}
