import { isObject } from '../values/json.ts';

/** One file of an undo. Its old bytes are beside the manifest, in a file named by its number. */
export interface UndoneFile {
  readonly path: string;
  readonly before: { readonly version: string; readonly mode: number } | null;
  readonly after: string | null;
}

/** The description of an undo. */
export interface Manifest {
  readonly version: 1;
  /** `applying` until all files are replaced: a later process that finds this state knows that the writer was killed. */
  readonly state: 'applying' | 'applied';
  /** Hex; part of the names of unfinished files, and tells this undo from a later one of the same number. */
  readonly id: string;
  readonly files: readonly UndoneFile[];
  /** Folders that were made for the files, the uppermost first. */
  readonly folders: readonly string[];
  /** The number of the undo that this one undoes. */
  readonly rewinds?: number;
}

/**
 * Parses the manifest of an undo: which files an apply changed, and what to restore. Undefined for a text that is not a
 * manifest: it may come from anywhere, for example from a clone.
 */
export function parseManifest(text: string): Manifest | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isManifest(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isManifest(value: unknown): value is Manifest {
  if (!isObject(value) || value.version !== 1) return false;
  if (value.state !== 'applying' && value.state !== 'applied') return false;
  if (typeof value.id !== 'string' || !/^[0-9a-f]{16}$/.test(value.id)) return false;
  if (value.rewinds !== undefined && !Number.isSafeInteger(value.rewinds)) return false;
  if (!Array.isArray(value.folders) || !value.folders.every((each) => typeof each === 'string')) return false;
  return Array.isArray(value.files) && value.files.every(isUndoneFile);
}

function isUndoneFile(value: unknown): boolean {
  if (!isObject(value) || typeof value.path !== 'string') return false;
  if (value.after !== null && typeof value.after !== 'string') return false;
  const { before } = value;
  return before === null || (isObject(before) && typeof before.version === 'string' && isMode(before.mode));
}

function isMode(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0o7777;
}
