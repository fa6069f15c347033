import { systemCode } from '../files/errors.ts';
import { versionOf } from './content-version.ts';
import type { WriteSnapshot } from './proposed-write.ts';
import { type RecordedCalls, replayInto } from './replay.ts';
import { type Listing, listFolder, MAX_ENTRIES } from './root/listing.ts';
import { fileInsideRoot, quotedPath } from './root/paths.ts';
import { Root } from './root/root.ts';
import { EditQueue, FileRefusedError, MAX_FILE_BYTES, type QueuedContent, type QueuedWrite } from './write-queue.ts';

/** A file as its model sees it. */
interface FileText {
  /** Normalized. */
  readonly path: string;
  readonly content: string;
  /** The file on the disk when this model first saw it: the SHA-256 of its bytes; null = no file. */
  readonly version: string | null;
}

/**
 * The files of a root as one model sees them: the files of the disk, with its own queued changes. It neither changes nor stores
 * anything on the disk: after a crash `replay` rebuilds the queue from the record of the run.
 *
 * All methods reject with `WriteOutsideRootError` for a path that leads out of the root, through a link, into `.git` or
 * `.pawl`, or to files that are off limits (ignored by Git, or likely secrets), and with `FileRefusedError` for other refusals.
 * The model reads both as error results.
 * @example
 * const overlay = new Overlay('/home/ada/project');
 * await overlay.write('notes.txt', 'Begin.\n');
 * overlay.writes(); // [{ path: 'notes.txt', content: 'Begin.\n', base: null }]
 */
export class Overlay {
  readonly #root: string;
  readonly #checkpoint: string | undefined;
  #opening: Promise<Root> | undefined;
  #queue = new EditQueue();
  /** The end of all calls so far. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param checkpoint the absolute path of the fan-out's checkpoint file, which the model must not read */
  constructor(root: string, checkpoint?: string) {
    this.#root = root;
    this.#checkpoint = checkpoint;
  }

  /** Text in UTF-8, at most 256 KB. */
  read(path: string): Promise<FileText> {
    return this.#inTurn((root) => this.#read(root, fileInsideRoot(path)));
  }

  /** Queues the whole new text of a file. */
  write(path: string, content: string): Promise<QueuedWrite> {
    return this.#inTurn((root) => {
      checkText(path, content);
      return this.#put(root, fileInsideRoot(path), content);
    });
  }

  /** Queues the deletion of a file. A file that exists only in the queue is removed from it. */
  delete(path: string): Promise<QueuedWrite> {
    return this.#inTurn((root) => this.#put(root, fileInsideRoot(path), null));
  }

  /** Lists a folder with all its subfolders. @param folder '' is the root */
  list(folder = ''): Promise<Listing> {
    return this.#inTurn(async (root) => {
      const place = await root.folder(folder);
      await root.checkAllowed(place.path, true);
      const onDisk = await listFolder(place, root);
      const prefix = place.path === '' ? '' : `${place.path}/`;
      const queued = [...this.#queue.files()].filter((path) => path.startsWith(prefix));
      if (!onDisk && queued.length === 0) throw new FileRefusedError(`there is no folder ${quotedPath(place.path)}`);
      const kept = (onDisk?.entries ?? []).filter((entry) => this.#queue.contentOf(entry) !== null);
      const entries = [...new Set([...kept, ...queued.flatMap((path) => withFolders(path, prefix))])].sort();
      return { entries: entries.slice(0, MAX_ENTRIES), isCut: onDisk?.isCut || entries.length > MAX_ENTRIES };
    });
  }

  /** The queued changes, sorted by path: the `proposedWrites` of the answer. */
  writes(): readonly WriteSnapshot[] {
    return this.#queue.writes();
  }

  /**
   * Rebuilds the queue from the record of a run, and replaces the current one. It does not read the disk: the results that the
   * model got are in the record.
   */
  replay(record: RecordedCalls): void {
    this.#queue = new EditQueue();
    replayInto(this.#queue, record);
  }

  async #read(root: Root, path: string): Promise<FileText> {
    const queued = this.#queue.contentOf(path);
    if (queued === null) throw new FileRefusedError(`there is no file ${quotedPath(path)}: its deletion is queued`);
    if (queued !== undefined) return { path, content: queued, version: this.#queue.baseOf(path) ?? null };
    const { stats } = await root.file(path);
    await root.checkAllowed(path);
    if (stats && stats.size > MAX_FILE_BYTES) throw tooLarge(path);
    const bytes = await root.read(path);
    if (!bytes) throw new FileRefusedError(`there is no file ${quotedPath(path)}`);
    const content = textOf(path, bytes);
    this.#queue.saw(path, versionOf(bytes));
    return { path, content, version: this.#queue.baseOf(path) ?? null };
  }

  async #put(root: Root, path: string, content: QueuedContent): Promise<QueuedWrite> {
    const bytes = await root.read(path);
    await root.checkAllowed(path);
    const base = bytes ? versionOf(bytes) : null;
    if (content === null) this.#checkIsThere(path, base);
    else this.#checkIsNoFolder(path);
    return this.#queue.put(path, content, base);
  }

  #checkIsThere(path: string, base: string | null): void {
    const isQueued = this.#queue.contentOf(path) !== undefined;
    if (!isQueued && base === null) throw new FileRefusedError(`there is no file ${quotedPath(path)}`);
  }

  /** The disk was already checked; a queued file may conflict, too. */
  #checkIsNoFolder(path: string): void {
    for (const other of this.#queue.files()) {
      if (!other.startsWith(`${path}/`) && !path.startsWith(`${other}/`)) continue;
      throw new FileRefusedError(
        `${quotedPath(path)} is refused: ${quotedPath(other)} is queued, and a file is not a folder`,
      );
    }
  }

  /** One after the other, in the order of the calls. */
  #inTurn<T>(work: (root: Root) => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => work(await this.#open())).catch(refuse);
    this.#last = turn.catch(() => {});
    return turn;
  }

  #open(): Promise<Root> {
    this.#opening ??= Root.open(this.#root, this.#checkpoint).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}

/** The system's errors contain the root's path on this machine, which the model must not see. */
function refuse(error: unknown): never {
  const code = systemCode(error);
  throw code === undefined ? error : new FileRefusedError(`the disk refuses it: ${code}`);
}

function checkText(path: string, content: unknown): void {
  if (typeof content !== 'string' || !content.isWellFormed()) {
    throw new FileRefusedError(`the content for ${quotedPath(String(path))} is not text`);
  }
  if (Buffer.byteLength(content) > MAX_FILE_BYTES) throw tooLarge(String(path));
}

/** A byte order mark stays: writing the text back must give the same bytes. */
function textOf(path: string, bytes: Buffer): string {
  if (bytes.length > MAX_FILE_BYTES) throw tooLarge(path);
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // It is not UTF-8.
  }
  throw new FileRefusedError(`${quotedPath(path)} is not UTF-8 text, and is not shown`);
}

function tooLarge(path: string): FileRefusedError {
  return new FileRefusedError(
    `${quotedPath(path)} is refused: more than ${MAX_FILE_BYTES >> 10} KB in one file is too much`,
  );
}

/** A file, and its parent folders up to the start of the listing. */
function withFolders(path: string, prefix: string): string[] {
  const names = path.slice(prefix.length).split('/');
  return names.map((_, i) => `${prefix}${names.slice(0, i + 1).join('/')}${i + 1 < names.length ? '/' : ''}`);
}
