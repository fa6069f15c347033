import * as fs from 'node:fs';
import { readdir, rm, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isAbsent, systemCode } from './errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from './private-modes.ts';

/** An open file. Positions are explicit: no call depends on an earlier one. */
export interface OpenFile {
  /** Returns fewer bytes than requested only at the end of the file. */
  read(length: number, position: number): Promise<Buffer>;
  /** Writes all bytes, or rejects. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Waits until the disk has all written bytes. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * `create` makes a file that only this user may read, `create-shared` one with the umask's permissions. Both fail if the
 * name is taken.
 */
type OpenMode = 'read' | 'create' | 'create-shared';

/**
 * The file system that files of this package need, as a port: tests use one that fails. All calls return promises and reject with the
 * system's error (`ENOENT`, `ENOSPC`, …). If the last part of a path is a link, the call does not follow it.
 */
export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** Reads the whole of a small file. */
  readWhole(path: string): Promise<Buffer>;
  /** When a file last changed, by the wall clock, ms. */
  readChangeTime(path: string): Promise<number>;
  /** Lists the names in a folder, in no order. */
  names(folder: string): Promise<string[]>;
  /** Lists the folders in a folder, in no order; links do not count. */
  folders(folder: string): Promise<string[]>;
  /** Makes a folder and its parents. Only this user may read them, unless `isShared`. */
  makeFolder(path: string, isShared?: boolean): Promise<void>;
  /** Makes a second name for a file; fails if the name is taken. */
  link(path: string, name: string): Promise<void>;
  rename(path: string, name: string): Promise<void>;
  /** Removes a file, if it exists. */
  remove(path: string): Promise<void>;
  /** Removes a folder with its content, if it exists. */
  removeFolder(path: string): Promise<void>;
  /** Waits until the disk has the names in a folder. */
  syncFolder(path: string): Promise<void>;
}

// Windows has neither of these two flags, and users there may not make links.
const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW: noFollow = 0, O_NONBLOCK: noWait = 0 } = fs.constants;

const flags: Readonly<Record<OpenMode, number>> = {
  // Opening a pipe would wait until another process writes to it.
  read: O_RDONLY | noFollow | noWait,
  create: O_RDWR | O_CREAT | O_EXCL | noFollow,
  'create-shared': O_RDWR | O_CREAT | O_EXCL | noFollow,
};

/** The most bytes that are written in place, and the largest file that is removed in place. */
const SMALL = 2 ** 16;

/**
 * The file system of this machine, as the port `FileSystem`. Calls that never wait for the disk (a name, a stat, a write of
 * a few pages into the system's memory) run in place: another thread would cost several times as much.
 */
export const diskFiles: FileSystem = {
  open: async (path, mode) =>
    new DiskFile(fs.openSync(path, flags[mode], mode === 'create-shared' ? 0o666 : PRIVATE_FILE)),
  readWhole,
  readChangeTime: async (path) => fs.lstatSync(path).mtimeMs,
  names: (folder) => readdir(folder),
  folders: async (folder) => {
    const found = await readdir(folder, { withFileTypes: true });
    return found.filter((each) => each.isDirectory()).map((each) => each.name);
  },
  makeFolder: async (path, isShared = false) =>
    void fs.mkdirSync(path, { recursive: true, mode: isShared ? 0o777 : PRIVATE_FOLDER }),
  link: async (path, name) => fs.linkSync(path, name),
  rename: async (path, name) => fs.renameSync(path, name),
  remove: async (path) => {
    try {
      if (isCheap(fs.lstatSync(path))) fs.unlinkSync(path);
      else await unlink(path);
    } catch (error) {
      if (!isAbsent(error)) throw error;
    }
  },
  removeFolder,
  syncFolder,
};

class DiskFile implements OpenFile {
  readonly #file: number;

  constructor(file: number) {
    this.#file = file;
  }

  get size(): number {
    return fs.fstatSync(this.#file).size;
  }

  async read(length: number, position: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await read(this.#file, buffer, filled, length - filled, position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const rest = bytes.length - written;
      written +=
        rest <= SMALL
          ? fs.writeSync(this.#file, bytes, written, rest, position + written)
          : (await write(this.#file, bytes, written, rest, position + written)).bytesWritten;
    }
  }

  async sync(): Promise<void> {
    await datasync(this.#file);
  }

  async close(): Promise<void> {
    fs.closeSync(this.#file);
  }
}

/** Always asynchronous, even if there is no file: a caller that polls for a file must leave the event loop free. */
async function readWhole(path: string): Promise<Buffer> {
  const file = new DiskFile(await open(path, flags.read));
  try {
    return await file.read(file.size, 0);
  } finally {
    await file.close();
  }
}

const open = promisify(fs.open);
const read = promisify(fs.read);
const write = promisify(fs.write);
const datasync = promisify(fs.fdatasync);
const sync = promisify(fs.fsync);

/** Removing one of several names, or a small file, is fast; the disk needs time to free the blocks of a large file. */
const isCheap = ({ nlink, size }: fs.Stats) => nlink > 1 || size <= SMALL;

/** Most folders are empty when they are removed; checking first costs more. */
async function removeFolder(path: string): Promise<void> {
  try {
    fs.rmdirSync(path);
  } catch (error) {
    if (isAbsent(error)) return;
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw error;
    await rm(path, { recursive: true, force: true });
  }
}

/** Windows syncs the names of a folder itself, and refuses to open a folder. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = fs.openSync(path, O_RDONLY);
  try {
    await sync(folder);
  } finally {
    fs.closeSync(folder);
  }
}

/** Calls `work` with an open file, and closes the file. */
export async function withFile<T>(opening: Promise<OpenFile>, work: (file: OpenFile) => Promise<T>): Promise<T> {
  const file = await opening;
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
