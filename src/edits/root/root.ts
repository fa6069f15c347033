import { constants, type Stats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import { WriteFailedError, WriteOutsideRootError } from '../errors.ts';
import { OffLimits } from './off-limits.ts';
import { fileInsideRoot, insideRoot, plainName, quotedPath, refused } from './paths.ts';

/** A place inside the root, and what was there at the check. */
export interface FilePlace {
  /** Relative to the root, with forward slashes; '' is the root. */
  readonly path: string;
  /** Its path on this machine. */
  readonly at: string;
  readonly stats: Stats | undefined;
}

/** Bytes of the largest file that can be read, changed or deleted: the undo must store its old bytes. */
const MAX_BYTES = 64 * 2 ** 20;

/** The folder whose files models may read and propose to change. All their paths are checked here. */
export class Root {
  /** Without links: the path of the root may contain some, paths inside it may not. */
  readonly at: string;

  /** The fan-out's own files, which models can neither read nor change. */
  readonly isOwn: IsOwn;

  /** Files that Git ignores, and likely secrets. */
  readonly offLimits: OffLimits;

  private constructor(at: string, isOwn: IsOwn, offLimits: OffLimits) {
    this.at = at;
    this.isOwn = isOwn;
    this.offLimits = offLimits;
  }

  /**
   * Opens a folder as a root.
   * @param checkpoint the checkpoint file of the fan-out, an absolute path
   * @throws {WRITE_FAILED} if there is no such folder
   */
  static async open(root: string, checkpoint?: string): Promise<Root> {
    if (typeof root !== 'string' || root === '') throw new TypeError('root must be the path of a folder');
    try {
      const at = await realpath(root);
      const isOwn = checkpoint === undefined ? () => false : await ownFilesIn(at, checkpoint);
      if ((await lstat(at)).isDirectory()) return new Root(at, isOwn, await OffLimits.of(at));
    } catch (cause) {
      throw new WriteFailedError(`the root ${quotedPath(root)} cannot be used; use a folder that exists`, { cause });
    }
    throw new WriteFailedError(`the root ${quotedPath(root)} is not a folder; use a folder that exists`);
  }

  /**
   * A file, or the place of a new one.
   * @throws {WRITE_OUTSIDE_ROOT} if the path leads elsewhere, through a link, or to something that is not a regular file
   */
  async file(path: unknown): Promise<FilePlace> {
    const place = await this.#find(fileInsideRoot(path));
    if (place.stats && !place.stats.isFile()) throw refused(place.path, 'there is no regular file at that place');
    return place;
  }

  /** Finds a folder of the root. @throws {WRITE_OUTSIDE_ROOT} as for a file */
  async folder(path: unknown): Promise<FilePlace> {
    const place = await this.#find(insideRoot(path));
    if (place.stats && !place.stats.isDirectory()) throw refused(place.path, 'it is a file, not a folder');
    return place;
  }

  /**
   * Refuses files that models may neither read nor change.
   * @param path as `file` or `folder` of this root returned it
   * @throws {WRITE_OUTSIDE_ROOT}
   */
  async checkAllowed(path: string, isFolder = false): Promise<void> {
    const reason = await this.offLimits.reason(path, isFolder);
    if (reason === undefined) return;
    throw new WriteOutsideRootError(
      `${quotedPath(path)} is off limits: ${reason}. Models can neither read nor write it`,
    );
  }

  /**
   * The bytes of a file; undefined if there is none.
   * @throws {WRITE_OUTSIDE_ROOT} @throws {RangeError} for a file that is too large
   */
  async read(path: unknown): Promise<Buffer | undefined> {
    const place = await this.file(path);
    return place.stats && bytesAt(place);
  }

  async #find(path: string): Promise<FilePlace> {
    if (this.isOwn(path)) throw refused(path, 'it has the answers, and is not accessible to models');
    const names = path === '' ? [] : path.split('/');
    let at = this.at;
    let stats: Stats | undefined = await lstat(at);
    for (const name of names) {
      if (!stats?.isDirectory()) throw refused(path, 'a name before the last is a file, not a folder');
      at = join(at, name);
      stats = await orAbsent(lstat(at));
      if (stats?.isSymbolicLink()) throw refused(path, `${quotedPath(name)} is a link, and links are not followed`);
      if (!stats) break;
    }
    return { path, at: join(this.at, path), stats };
  }
}

// Windows has neither of these flags; links are rare there, and pipes are not files.
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** A file that has become a link or a pipe since the check is not read. */
async function bytesAt({ path, at }: FilePlace): Promise<Buffer | undefined> {
  try {
    const file = await open(at, flags);
    try {
      const { size } = await file.stat();
      if (size > MAX_BYTES) throw new RangeError(`${quotedPath(path)} is larger than ${MAX_BYTES >> 20} MB`);
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

/** Whether models may not access a path relative to the root. */
type IsOwn = (path: string) => boolean;

/**
 * The checkpoint file of a fan-out may be among the files of its models. They can then not access it, its lock, its
 * unfinished writes, or the records beside it: those contain the answers of other models.
 * @param root without links @param checkpoint an absolute path
 */
async function ownFilesIn(root: string, checkpoint: string): Promise<IsOwn> {
  const given = dirname(checkpoint);
  // For a file outside of the root this begins with .., as no path of a model does.
  const folder = relative(root, await realpath(given).catch(() => given));
  const own = plainPath(join(folder, basename(checkpoint)).replaceAll(sep, '/'));
  return (path) => {
    const plain = plainPath(path);
    return plain.startsWith(own) && beside.test(plain.slice(own.length));
  };
}

/** The rest of a name after that of the checkpoint file, for the file itself and those that belong to it. */
const beside = /^($|[/:]|\.(lock|runs)($|[./:])|\.\d+\.[0-9a-f]{8}\.tmp)/;

/** Some file systems treat other spellings as the same. */
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
