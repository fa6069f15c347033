import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';

const MAX_FILES = 600;
/** What a model is shown of one file. */
const MAX_READ_BYTES = 65_536;
const MAX_FILE_BYTES = 8_388_608;

export interface Listing {
  readonly folder: string;
  /** Paths relative to the folder, with forward slashes, in order. */
  readonly files: readonly string[];
  /** How many more there are. */
  readonly leftOut: number;
}

export type FileContent =
  | { readonly file: string; readonly bytes: number; readonly text: string; readonly isCut?: true }
  | { readonly file: string; readonly bytes: number; readonly skipped: string };

/** Lists the regular files below a folder. Hidden ones, `node_modules` and symbolic links are passed over. */
export async function listFolder(folder: string): Promise<Listing> {
  const found: string[] = [];
  await collect(await existing(folder), '', found);
  found.sort();
  return { folder, files: found.slice(0, MAX_FILES), leftOut: Math.max(0, found.length - MAX_FILES) };
}

async function collect(folder: string, prefix: string, found: string[]): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    const file = `${prefix}${entry.name}`;
    if (entry.isDirectory()) await collect(join(folder, entry.name), `${file}/`, found);
    else if (entry.isFile()) found.push(file);
  }
}

async function existing(folder: string): Promise<string> {
  const stat = await lstat(await realpath(folder).catch(() => folder)).catch(() => undefined);
  if (stat?.isDirectory()) return realpath(folder);
  throw new Error(`there is no folder ${folder}`);
}

/** Reads a text file of the folder, its first 64 KiB at most. Files outside of the folder are refused, also through links. */
export async function readInside(folder: string, file: string): Promise<FileContent> {
  const root = await existing(folder);
  const path = join(root, file);
  const real = await realpath(path).catch(() => path);
  if (isAbsolute(file) || !isInside(root, path) || !isInside(root, real)) {
    throw new Error(`${file} is not in the folder; read only what list_files names`);
  }
  const stat = await lstat(real).catch(() => undefined);
  if (!stat?.isFile()) throw new Error(`${file} is no file of the folder; read only what list_files names`);
  if (stat.size > MAX_FILE_BYTES) return { file, bytes: stat.size, skipped: 'too large' };
  // The path was looked at a moment ago: a link that has taken its place meanwhile is not followed.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await contentOf(handle, file, stat.size);
  } finally {
    await handle.close();
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function contentOf(handle: FileHandle, file: string, bytes: number): Promise<FileContent> {
  const buffer = Buffer.alloc(Math.min(bytes, MAX_READ_BYTES));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  const head = buffer.subarray(0, filled);
  if (head.includes(0)) return { file, bytes, skipped: 'binary' };
  const isCut = bytes > filled;
  // `stream` leaves half a character at the end out.
  const text = new TextDecoder().decode(head, { stream: isCut });
  return isCut ? { file, bytes, text, isCut } : { file, bytes, text };
}
