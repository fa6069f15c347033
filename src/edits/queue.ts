import type { WriteSnapshot } from './proposed-write.ts';
import { quoted } from './root/paths.ts';
import { versionOf } from './version.ts';

/** Why a file tool does not do what a model asks: for the model to read. */
export class FileRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** How much one model may have queued. */
const MAX_WRITES = 1_000;
const MAX_QUEUED_BYTES = 16 * 2 ** 20;
/** Bytes of the largest file that a model reads or writes. */
export const MAX_FILE_BYTES = 256 * 1024;

/** The text that a file is to have; null = it is to go. */
export type QueuedContent = string | null;

/** A change as it was taken into the queue. */
export interface QueuedWrite {
  /** Normalized. */
  readonly path: string;
  /** What the file was before: the SHA-256 of its bytes; null = there was none. */
  readonly base: string | null;
  /** Changes of one model in their order, from 1: calls of one step may end in another order than they stand in. */
  readonly change: number;
  /** Whether there is something to do for this path now; not when it is to be as it is anyway. */
  readonly isQueued: boolean;
}

/** What one model has seen and wants changed. Knows no disk: from the same calls comes the same queue. */
export class WriteQueue {
  readonly #bases = new Map<string, string | null>();
  readonly #contents = new Map<string, QueuedContent>();
  #bytes = 0;
  #changes = 0;

  /** What a file was when it was first seen; undefined when it was not seen yet. */
  baseOf(path: string): string | null | undefined {
    return this.#bases.get(path);
  }

  /** Notes what a file was. Only the first time counts: what is proposed later rests on all that was read. */
  saw(path: string, version: string | null): void {
    if (!this.#bases.has(path)) this.#bases.set(path, version);
  }

  /** What a path is to be; undefined when nothing is queued for it. */
  contentOf(path: string): QueuedContent | undefined {
    return this.#contents.get(path);
  }

  /**
   * Queues a write or a deletion of a file.
   * @param base what the file is now; the first one counts
   * @throws {FileRefusedError} when too much would be queued
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

  /** As `put`, for what was put once already: its size is no question any more. */
  restore(path: string, content: QueuedContent, { base, change }: Pick<QueuedWrite, 'base' | 'change'>): void {
    this.saw(path, base);
    const isQueued = (content === null ? null : versionOf(content)) !== this.#bases.get(path);
    this.#bytes += isQueued ? sizeOf(content) - this.#sizeAt(path) : -this.#sizeAt(path);
    if (isQueued) this.#contents.set(path, content);
    else this.#contents.delete(path);
    this.#changes = Math.max(this.#changes, change);
  }

  /** The paths that are to be files. */
  *files(): Generator<string> {
    for (const [path, content] of this.#contents) if (content !== null) yield path;
  }

  /** All that is queued, sorted by path. */
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
      throw new FileRefusedError(`there are ${MAX_WRITES} changes queued already, and no more are taken`);
    }
    if (this.#bytes + sizeOf(content) - this.#sizeAt(path) <= MAX_QUEUED_BYTES) return;
    const most = MAX_QUEUED_BYTES >> 20;
    throw new FileRefusedError(`${quoted(path)} is not queued: all queued changes may have ${most} MB together`);
  }

  #sizeAt(path: string): number {
    return sizeOf(this.#contents.get(path) ?? null);
  }
}

function sizeOf(content: QueuedContent): number {
  return content === null ? 0 : Buffer.byteLength(content);
}
