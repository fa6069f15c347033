import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../files/errors.ts';
import { isKept } from './paths.ts';
import type { FilePlace, Root } from './root.ts';

/** The content of a folder and its subfolders, by paths relative to the root. */
export interface Listing {
  /** Sorted; folders end in a slash. */
  readonly entries: readonly string[];
  /** Entries are missing. The deepest ones are left out first. */
  readonly isCut: boolean;
}

/** The most entries of a listing, and the most names that are read for it. */
export const MAX_ENTRIES = 1_000;
const MAX_NAMES = 20_000;

/**
 * Lists the files and folders of a folder for a model, level by level, so that the upper part of a large tree is complete.
 * Links, `node_modules`, and files that models may not read are left out. Undefined if there is no such folder.
 */
export async function listFolder(
  { path, at, stats }: FilePlace,
  { isOwn, offLimits }: Pick<Root, 'isOwn' | 'offLimits'>,
): Promise<Listing | undefined> {
  if (!stats) return undefined;
  const isOffLimits = offLimits.listing();
  const entries: string[] = [];
  let level = [path];
  let budget = MAX_NAMES;
  while (level.length > 0 && entries.length <= MAX_ENTRIES && budget > 0) {
    const next: string[] = [];
    for (const folder of level) {
      const found = await namesIn(join(at, folder.slice(path.length)), budget);
      budget -= found.seen;
      for (const name of found.names) {
        const entry = folder === '' ? name : `${folder}/${name}`;
        const isFolder = entry.endsWith('/');
        const plain = isFolder ? entry.slice(0, -1) : entry;
        const isHidden = isOwn(entry) || (await isOffLimits({ path: plain, isFolder }));
        // The patterns take too long: entries that were not checked are not shown.
        if (isHidden === undefined) return { entries: entries.sort(), isCut: true };
        if (isHidden) continue;
        entries.push(entry);
        if (isFolder) next.push(plain);
      }
      if (budget <= 0) break;
    }
    level = next.sort();
  }
  const isCut = level.length > 0 || entries.length > MAX_ENTRIES || budget <= 0;
  return { entries: entries.slice(0, MAX_ENTRIES).sort(), isCut };
}

/** The sorted names in a folder, folders with a slash. A folder that is gone, or cannot be read, has none. */
async function namesIn(folder: string, most: number): Promise<{ names: string[]; seen: number }> {
  const names: string[] = [];
  let seen = 0;
  const opened = await opendir(folder).catch(ignoreUnreadable);
  if (!opened) return { names, seen };
  // The loop closes it, also after an error.
  for await (const entry of opened) {
    seen += 1;
    if (entry.isFile() && !isKept(entry.name)) names.push(entry.name);
    if (entry.isDirectory() && !isKept(entry.name) && entry.name !== 'node_modules') names.push(`${entry.name}/`);
    if (seen >= most) break;
  }
  return { names: names.sort(), seen };
}

function ignoreUnreadable(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(systemCode(error) ?? '')) throw error;
}
