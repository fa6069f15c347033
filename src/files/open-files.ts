import type { OpenFile } from './file-system.ts';

/** The most files that stay open: beyond this, the least recently used one is closed. */
const MAX_KEPT = 32;

/** A file that is not used for this long is closed before twice this time has passed, ms. */
const IDLE_MS = 1_000;

/** Calls `work` once, later. The timer must not keep the process running. */
export type Later = (work: () => void, ms: number) => void;

const later: Later = (work, ms) => void setTimeout(work, ms).unref();

interface Kept {
  readonly file: OpenFile;
  readonly identity: string;
  /** Not used since the last check. */
  isIdle: boolean;
}

/**
 * Keeps files open between two writes, so that they need not be opened for each. A caller must hold the lock of what the
 * file belongs to. It takes the file, and returns it before it releases the lock. The caller checks that the file is still
 * at its path: the identity says which file is meant.
 */
export class OpenFiles {
  readonly #kept = new Map<string, Kept>();
  readonly #later: Later;
  #isWatching = false;

  constructor(after: Later = later) {
    this.#later = after;
  }

  /** Returns the open file of that identity and no longer keeps it: the caller closes it, or returns it. */
  take(name: string, identity: string): OpenFile | undefined {
    const kept = this.#kept.get(name);
    if (kept?.identity === identity) {
      this.#kept.delete(name);
      return kept.file;
    }
    this.drop(name);
    return undefined;
  }

  keep(name: string, identity: string, file: OpenFile): void {
    // On Windows an open file cannot be replaced, and its folder cannot be removed.
    const isKept = process.platform !== 'win32';
    this.drop(name);
    if (isKept) this.#kept.set(name, { file, identity, isIdle: false });
    else close(file);
    const [oldest] = this.#kept.size > MAX_KEPT ? this.#kept.keys() : [];
    if (oldest !== undefined) this.drop(oldest);
    this.#watch();
  }

  /** Closes a file that is no longer needed, or that another one replaces. */
  drop(name: string): void {
    const kept = this.#kept.get(name);
    if (!kept) return;
    this.#kept.delete(name);
    close(kept.file);
  }

  close(): void {
    for (const name of [...this.#kept.keys()]) this.drop(name);
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#later(() => {
      this.#isWatching = false;
      for (const [name, kept] of [...this.#kept]) {
        if (kept.isIdle) this.drop(name);
        kept.isIdle = true;
      }
      if (this.#kept.size > 0) this.#watch();
    }, IDLE_MS);
  }
}

/** The written bytes are already on the disk, or need not be: a failed close is harmless. */
function close(file: OpenFile): void {
  file.close().catch(() => {});
}
