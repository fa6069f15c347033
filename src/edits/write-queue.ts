import { versionOf } from './content-version.ts';
import type { WriteSnapshot } from './proposed-write.ts';
import { quotedPath } from './root/paths.ts';

/** The error with which a file tool refuses a call; the model reads the message. */
export class FileRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The most queued changes of one model. */
const MAX_WRITES = 1_000;
const MAX_QUEUED_BYTES = 16 * 2 ** 20;
/** Bytes of the largest file that a model can read or write. */
export const MAX_FILE_BYTES = 256 * 1024;

/** The new text of a file; null = it is deleted. */
export type QueuedContent = string | null;

/** A queued change. */
export interface QueuedWrite {
  /** Normalized. */
  readonly path: string;
  /** The file before: the SHA-256 of its bytes; null = there was no file. */
  readonly base: string | null;
  /** The number of the model's change, from 1: calls of one step may complete in another order. */
  readonly change: number;
  /** Whether the queue changes this path now; false if the file already has this content. */
  readonly isQueued: boolean;
}

/**
 * The files that one model has read, and the changes that it has proposed, in memory. It does not use the disk: equal calls
 * give equal queues.
 */
export class EditQueue {
  readonly #bases = new Map<string, string | null>();
  readonly #contents = new Map<string, QueuedContent>();
  #bytes = 0;
  #changes = 0;

  /** The version of a file when it was first seen; undefined if it was not seen yet. */
  baseOf(path: string): string | null | undefined {
    return this.#bases.get(path);
  }

  /** Notes the version of a file. Only the first call counts: a change is based on the first version that was read. */
  saw(path: string, version: string | null): void {
    if (!this.#bases.has(path)) this.#bases.set(path, version);
  }

  /** The queued content of a path; undefined if nothing is queued for it. */
  contentOf(path: string): QueuedContent | undefined {
    return this.#contents.get(path);
  }

  /**
   * Queues a write or a deletion of a file.
   * @param base the current version; the first one counts
   * @throws {FileRefusedError} if the queue would be too large
   */
  put(path: string, content: QueuedContent, base: string | null): QueuedWrite {
    const first = this.#bases.get(path);
    const before = first === undefined ? base : first;
    const isQueued = (content === null ? null : versionOf(content)) !== before;
    if (isQueued) this.#makeRoom(path, content);
    const change = this.#changes + 1;
    this.restore(path, content, { base, change });
    return { path, base: before, change, isQueued };
  }

  /** Like `put`, for a change that was already accepted: its size is not checked again. */
  restore(path: string, content: QueuedContent, { base, change }: Pick<QueuedWrite, 'base' | 'change'>): void {
    this.saw(path, base);
    const isQueued = (content === null ? null : versionOf(content)) !== this.#bases.get(path);
    this.#bytes += isQueued ? sizeOf(content) - this.#sizeAt(path) : -this.#sizeAt(path);
    if (isQueued) this.#contents.set(path, content);
    else this.#contents.delete(path);
    this.#changes = Math.max(this.#changes, change);
  }

  /** The paths of queued files. */
  *files(): Generator<string> {
    for (const [path, content] of this.#contents) if (content !== null) yield path;
  }

  /** All queued changes, sorted by path. */
  writes(): readonly WriteSnapshot[] {
    const paths = [...this.#contents.keys()].sort();
    return paths.map((path) => {
      const content = this.#contents.get(path) ?? null;
      const base = this.#bases.get(path) ?? null;
      return content === null ? { path, content: '', delete: true, base } : { path, content, base };
    });
  }

  #makeRoom(path: string, content: QueuedContent): void {
    if (!this.#contents.has(path) && this.#contents.size >= MAX_WRITES) {
      throw new FileRefusedError(`${MAX_WRITES} changes are already queued; no more are accepted`);
    }
    if (this.#bytes + sizeOf(content) - this.#sizeAt(path) <= MAX_QUEUED_BYTES) return;
    const most = MAX_QUEUED_BYTES >> 20;
    throw new FileRefusedError(
      `${quotedPath(path)} is not queued: all queued changes together may have at most ${most} MB`,
    );
  }

  #sizeAt(path: string): number {
    return sizeOf(this.#contents.get(path) ?? null);
  }
}

function sizeOf(content: QueuedContent): number {
  return content === null ? 0 : Buffer.byteLength(content);
}
