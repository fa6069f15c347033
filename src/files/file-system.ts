import * as fs from 'node:fs';
import { readdir, rm, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isAbsent, systemCode } from './errors.ts';

/** Which file stands under a path: it stays the same while the file grows, and differs once another took its place. */
export interface FileStamp {
  readonly identity: string;
  /** Bytes. */
  readonly size: number;
  /** Wall clock of the last change, ms. */
  readonly changedAt: number;
  readonly isFolder: boolean;
}

/** An open file. Positions are explicit: nothing depends on where an earlier call ended. */
export interface OpenFile {
  stamp(): Promise<FileStamp>;
  /** Fewer bytes than asked for only at the end of the file. */
  read(length: number, position: number): Promise<Buffer>;
  /** All of them, or it rejects. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Waits until the disk has what was written. @param isInPlace whether this thread waits itself, which a fast disk is worth */
  sync(isInPlace?: boolean): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * `create` makes a file that only this user may read, `create-shared` one with the permissions that the umask leaves. Both
 * fail when something has that name already.
 */
type OpenMode = 'read' | 'update' | 'create' | 'create-shared';

/**
 * What a store needs of a file system, as a port: tests put one in its place that fails. All calls give promises and
 * reject with the system's error (`ENOENT`, `ENOSPC`, …). The last part of a path is never followed when it is a link.
 */
export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** The whole of a small file. */
  readWhole(path: string): Promise<Buffer>;
  stamp(path: string): Promise<FileStamp>;
  /** What is in a folder, in no order. */
  names(folder: string): Promise<string[]>;
  /** The folders in a folder, in no order; links are none. */
  folders(folder: string): Promise<string[]>;
  /** With those above it; only this user may look into what is made, unless it is shared. */
  makeFolder(path: string, isShared?: boolean): Promise<void>;
  /** A second name for a file; fails when the name is taken. */
  link(path: string, name: string): Promise<void>;
  rename(path: string, name: string): Promise<void>;
  /** A file; nothing there is fine. @param isSmall known to be: it need not be looked at first */
  remove(path: string, isSmall?: boolean): Promise<void>;
  /** A folder with all that is in it; nothing there is fine. */
  removeFolder(path: string): Promise<void>;
  /** Waits until the disk has the names in a folder. */
  syncFolder(path: string): Promise<void>;
}

// Windows has not these two flags, and no links that everybody may make.
const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW: noFollow = 0, O_NONBLOCK: noWait = 0 } = fs.constants;

const flags: Readonly<Record<OpenMode, number>> = {
  // A pipe in the place of a file would be waited for until somebody writes to it.
  read: O_RDONLY | noFollow | noWait,
  update: O_RDWR | noFollow,
  create: O_RDWR | O_CREAT | O_EXCL | noFollow,
  'create-shared': O_RDWR | O_CREAT | O_EXCL | noFollow,
};

/** What Pawl makes is for this user alone, whatever the umask says. Files and folders that are there keep what they have. */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;

/** So many bytes are written at once, and a file of so many removed. */
const SMALL = 2 ** 16;

/**
 * The file system of this machine. What never waits for the disk (a name, a look, a write of a few pages into the system's
 * memory) is done at once: handing it to another thread costs several times what it costs itself.
 */
export const diskFiles: FileSystem = {
  open: async (path, mode) =>
    new DiskFile(fs.openSync(path, flags[mode], mode === 'create-shared' ? 0o666 : PRIVATE_FILE)),
  readWhole,
  stamp: async (path) => toStamp(fs.lstatSync(path)),
  names: (folder) => readdir(folder),
  folders: async (folder) => {
    const found = await readdir(folder, { withFileTypes: true });
    return found.filter((each) => each.isDirectory()).map((each) => each.name);
  },
  makeFolder: async (path, isShared = false) =>
    void fs.mkdirSync(path, { recursive: true, mode: isShared ? 0o777 : PRIVATE_FOLDER }),
  link: async (path, name) => fs.linkSync(path, name),
  rename: async (path, name) => fs.renameSync(path, name),
  remove: async (path, isSmall = false) => {
    try {
      if (isSmall || isCheap(fs.lstatSync(path))) fs.unlinkSync(path);
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

  async stamp(): Promise<FileStamp> {
    return toStamp(fs.fstatSync(this.#file));
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

  async sync(isInPlace = false): Promise<void> {
    if (isInPlace) fs.fdatasyncSync(this.#file);
    else await datasync(this.#file);
  }

  truncate(size: number): Promise<void> {
    return truncate(this.#file, size);
  }

  async close(): Promise<void> {
    fs.closeSync(this.#file);
  }
}

/** Never at once, also where there is nothing: whoever waits for a file by looking again and again leaves room for others. */
async function readWhole(path: string): Promise<Buffer> {
  const file = new DiskFile(await open(path, flags.read));
  try {
    const { size } = await file.stamp();
    return await file.read(size, 0);
  } finally {
    await file.close();
  }
}

const open = promisify(fs.open);
const read = promisify(fs.read);
const write = promisify(fs.write);
const datasync = promisify(fs.fdatasync);
const sync = promisify(fs.fsync);
const truncate = promisify(fs.ftruncate);

/** Another name of a file, or a small one, goes at once; the blocks of a large one take the disk a while. */
const isCheap = ({ nlink, size }: fs.Stats) => nlink > 1 || size <= SMALL;

interface Stat {
  readonly ino: number;
  readonly birthtimeMs: number;
  readonly size: number;
  readonly mtimeMs: number;
  isDirectory(): boolean;
}

/** The number of a deleted file is given to a new one soon; the time of its birth tells them apart. */
function toStamp(stat: Stat): FileStamp {
  const identity = `${stat.ino}:${stat.birthtimeMs}`;
  return { identity, size: stat.size, changedAt: stat.mtimeMs, isFolder: stat.isDirectory() };
}

/** Most are empty when they go; looking first costs more. */
async function removeFolder(path: string): Promise<void> {
  try {
    fs.rmdirSync(path);
  } catch (error) {
    if (isAbsent(error)) return;
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw error;
    await rm(path, { recursive: true, force: true });
  }
}

/** Windows keeps the names of a folder safe by itself, and refuses to open it. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = fs.openSync(path, O_RDONLY);
  try {
    await sync(folder);
  } finally {
    fs.closeSync(folder);
  }
}
