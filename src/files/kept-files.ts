import type { OpenFile } from './file-system.ts';

/** More files than this do not stay open: the one that was needed longest ago is closed. */
const MAX_KEPT = 32;

/** A file that was not needed for this long is closed before twice this time has passed, ms. */
const IDLE_MS = 1_000;

/** Calls once, later. It must not keep the process running. */
export type Later = (work: () => void, ms: number) => void;

const later: Later = (work, ms) => void setTimeout(work, ms).unref();

interface Kept {
  readonly file: OpenFile;
  readonly identity: string;
  /** Not needed since the last round. */
  isIdle: boolean;
}

/**
 * Files that stay open between two writes. Only whoever holds the lock of what a file belongs to takes it, and gives it back
 * before letting go of the lock. That the file still stands under its path is for whoever takes it to know: the identity says
 * which one is meant.
 */
export class KeptFiles {
  readonly #kept = new Map<string, Kept>();
  readonly #later: Later;
  #isWatching = false;

  constructor(after: Later = later) {
    this.#later = after;
  }

  /** The open file of that identity. It is kept no longer: whoever gets it closes it, or gives it back. */
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
    // Windows lets nobody remove a folder, or replace a file, while somebody has the file open.
    const isKept = process.platform !== 'win32';
    this.drop(name);
    if (isKept) this.#kept.set(name, { file, identity, isIdle: false });
    else close(file);
    const [oldest] = this.#kept.size > MAX_KEPT ? this.#kept.keys() : [];
    if (oldest !== undefined) this.drop(oldest);
    this.#watch();
  }

  /** Nobody needs the file any more, or another one is to take its place. */
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

/** What was written is on the disk already, or need not be: that closing fails changes nothing. */
function close(file: OpenFile): void {
  file.close().catch(() => {});
}
