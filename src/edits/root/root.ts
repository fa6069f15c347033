import { constants, type Stats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import { WriteFailedError, WriteOutsideRootError } from '../errors.ts';
import { OffLimits } from './off-limits.ts';
import { type IsOwn, ownFilesIn } from './own-files.ts';
import { fileInsideRoot, insideRoot, quoted, refused } from './paths.ts';

/** A place inside the root, and what was there when we looked. */
export interface Place {
  /** Relative to the root, with forward slashes; '' is the root. */
  readonly path: string;
  /** Where it is on this machine. */
  readonly at: string;
  readonly stats: Stats | undefined;
}

/** Bytes of the largest file that is read, changed or deleted: its old bytes have to be kept. */
const MAX_BYTES = 64 * 2 ** 20;

/** The folder whose files models may see and propose to change. Every path that they give goes through here. */
export class Root {
  /** Without links: the root may be reached through some, what is in it may not. */
  readonly at: string;

  /** What is the fan-out's own, and neither read nor written by models. */
  readonly isOwn: IsOwn;

  /** What Git ignores, and what is likely to hold secrets. */
  readonly offLimits: OffLimits;

  private constructor(at: string, isOwn: IsOwn, offLimits: OffLimits) {
    this.at = at;
    this.isOwn = isOwn;
    this.offLimits = offLimits;
  }

  /**
   * @param checkpoint the checkpoint file of the fan-out, an absolute path
   * @throws {WriteFailedError} when there is no such folder
   */
  static async open(root: string, checkpoint?: string): Promise<Root> {
    if (typeof root !== 'string' || root === '') throw new TypeError('root must be the path of a folder');
    try {
      const at = await realpath(root);
      const isOwn = checkpoint === undefined ? () => false : await ownFilesIn(at, checkpoint);
      if ((await lstat(at)).isDirectory()) return new Root(at, isOwn, await OffLimits.of(at));
    } catch (cause) {
      throw new WriteFailedError(`the root ${quoted(root)} cannot be used; give a folder that exists`, { cause });
    }
    throw new WriteFailedError(`the root ${quoted(root)} is no folder; give one that exists`);
  }

  /**
   * A file, or the place of one that is not there yet.
   * @throws {WriteOutsideRootError} when the path leads elsewhere, through a link, or to what is no regular file
   */
  async file(path: unknown): Promise<Place> {
    const place = await this.#find(fileInsideRoot(path));
    if (place.stats && !place.stats.isFile()) throw refused(place.path, 'there is no regular file at that place');
    return place;
  }

  /** @throws {WriteOutsideRootError} as for a file */
  async folder(path: unknown): Promise<Place> {
    const place = await this.#find(insideRoot(path));
    if (place.stats && !place.stats.isDirectory()) throw refused(place.path, 'it is a file, not a folder');
    return place;
  }

  /**
   * Refuses what models may neither read nor change.
   * @param path as a file, or a folder, of this root gave it
   * @throws {WriteOutsideRootError}
   */
  async checkAllowed(path: string, isFolder = false): Promise<void> {
    const reason = await this.offLimits.reason(path, isFolder);
    if (reason === undefined) return;
    throw new WriteOutsideRootError(`${quoted(path)} is off limits: ${reason}. Models neither read nor write it`);
  }

  /**
   * The bytes of a file; undefined when there is none.
   * @throws {WriteOutsideRootError} @throws {RangeError} for a file that is too large
   */
  async read(path: unknown): Promise<Buffer | undefined> {
    const place = await this.file(path);
    return place.stats && bytesAt(place);
  }

  async #find(path: string): Promise<Place> {
    if (this.isOwn(path))
      throw refused(path, 'it is where the answers are kept, and neither read nor written by models');
    const names = path === '' ? [] : path.split('/');
    let at = this.at;
    let stats: Stats | undefined = await lstat(at);
    for (const name of names) {
      if (!stats?.isDirectory()) throw refused(path, 'a name before the last is a file, not a folder');
      at = join(at, name);
      stats = await orAbsent(lstat(at));
      if (stats?.isSymbolicLink()) throw refused(path, `${quoted(name)} is a link, and links are not followed`);
      if (!stats) break;
    }
    return { path, at: join(this.at, path), stats };
  }
}

// Windows has neither; there links are rare, and a pipe is no file.
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** What has become a link or a pipe since we looked is not read. */
async function bytesAt({ path, at }: Place): Promise<Buffer | undefined> {
  try {
    const file = await open(at, flags);
    try {
      const { size } = await file.stat();
      if (size > MAX_BYTES) throw new RangeError(`${quoted(path)} is larger than ${MAX_BYTES >> 20} MB`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isAbsent(error)) return undefined;
    if (systemCode(error) === 'ELOOP') throw refused(path, 'it is a link, and links are not followed');
    throw error;
  }
}
