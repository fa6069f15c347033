import { constants, type Stats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import { WriteFailedError, WriteOutsideRootError } from '../errors.ts';
import { OffLimits } from './off-limits.ts';
import { fileInsideRoot, insideRoot, plainName, quoted, refused } from './paths.ts';

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
   * Opens a folder as a root.
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

  /** Finds a folder of the root. @throws {WriteOutsideRootError} as for a file */
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

/** Whether a path relative to the root is kept from models. */
type IsOwn = (path: string) => boolean;

/**
 * The checkpoint file of a fan-out may lie among the files that its models work on: then it, its lock, unfinished writes of it
 * and the records beside it are not theirs to see or to change. They hold what the others say.
 * @param root without links @param checkpoint an absolute path
 */
async function ownFilesIn(root: string, checkpoint: string): Promise<IsOwn> {
  const given = dirname(checkpoint);
  // Of one outside the root this begins with .., as no path of a model does.
  const folder = relative(root, await realpath(given).catch(() => given));
  const own = plainPath(join(folder, basename(checkpoint)).replaceAll(sep, '/'));
  return (path) => {
    const plain = plainPath(path);
    return plain.startsWith(own) && beside.test(plain.slice(own.length));
  };
}

/** What follows the name of the checkpoint file: nothing, or what makes it the name of one of those beside it. */
const beside = /^($|[/:]|\.(lock|runs)($|[./:])|\.\d+\.[0-9a-f]{8}\.tmp)/;

/** Some file systems take other spellings for the same. */
function plainPath(path: string): string {
  const names = path.split('/').map((name) => withoutEnding(plainName(name)));
  return names.join('/');
}

/** A name without the dots and spaces at its end. */
function withoutEnding(name: string): string {
  let end = name.length;
  while (name[end - 1] === '.' || name[end - 1] === ' ') end -= 1;
  return name.slice(0, end);
}
