import { type Backoff, backoffMs } from '../values/backoff.ts';
import type { Clock } from '../values/clock.ts';
import { retryOf, toErrorData } from '../values/error-data.ts';

import { type Entry, type QueuedEntry, type RunHandle, type RunRow, sizeOf } from './entries.ts';

/** Where entries go: all of a batch, or none. */
export interface EntryFile {
  write(batch: readonly QueuedEntry[]): Promise<void>;
  /** Removes some of what is too old. @returns whether there may be more */
  removeOld(before: number): Promise<boolean>;
}

export interface QueueOptions {
  readonly clock: Clock;
  /** Opens the file, the first time. */
  readonly open: () => Promise<EntryFile>;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** How long ended runs are kept, ms. */
  readonly retentionMs: number;
}

/** What comes in within this time is written together, ms. */
const DELAY_MS = 50;

/** A file that cannot be written is tried again after this time, ms, at first; then after twice that, and so on. */
const backoff: Backoff = { firstMs: 500, maxMs: 30_000 };

/** So much waits at most; what comes after that is dropped, and counted. */
const MAX_ENTRIES = 20_000;
const MAX_CHARS = 64 * 1024 * 1024;

/** One transaction writes no more than this, so that it cannot hold up the event loop for long. */
const MAX_BATCH = 256;

const HOUR_MS = 3_600_000;

/** Entries on their way into the file. Nothing waits for it but who closes a run, or asks for something. */
export class EntryQueue {
  readonly #options: QueueOptions;
  #entries: QueuedEntry[] = [];
  #chars = 0;
  #dropped = 0;
  readonly #reasons = new Set<string>();
  #failures = 0;
  #timer: unknown;
  #flushing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isClosed = false;
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Entries that are not in the file and never will be. */
  get dropped(): number {
    return this.#dropped;
  }

  add(waiting: { readonly run: RunHandle; readonly row: RunRow; readonly entry: Entry }): void {
    const size = sizeOf(waiting.entry);
    const isFull = this.#entries.length >= MAX_ENTRIES || this.#chars + size > MAX_CHARS;
    if (this.#isClosed || isFull) {
      this.drop(waiting.run, this.#isClosed ? 'it was closed' : 'its file does not take them fast enough, or at all');
      return;
    }
    this.#entries.push({ ...waiting, size });
    this.#chars += size;
    this.#schedule();
  }

  /** Gives an entry up. Each reason is warned of once. */
  drop(run: RunHandle, why: string): void {
    run.dropped += 1;
    this.#dropped += 1;
    if (this.#reasons.has(why)) return;
    this.#reasons.add(why);
    this.#options.warn(`audit: entries are dropped: ${why}`, { waiting: this.#entries.length });
  }

  /** Writes what waits. Resolves when it is written, or could not be; never rejects. */
  flush(): Promise<void> {
    if (!this.#flushing) return this.#begin();
    // What came in after it began needs another one; all who ask for that meanwhile share it.
    this.#next ??= this.#flushing.then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    this.#stopTimer();
    for (const { run } of this.#entries) this.drop(run, 'its file could not be written before it was closed');
    this.#entries = [];
  }

  #begin(): Promise<void> {
    this.#stopTimer();
    this.#flushing = this.#write().finally(() => {
      this.#flushing = undefined;
      if (this.#entries.length > 0) this.#schedule();
    });
    return this.#flushing;
  }

  async #write(): Promise<void> {
    let left = this.#entries.length;
    while (left > 0) {
      const batch = this.#entries.slice(0, Math.min(MAX_BATCH, left));
      if (!(await this.#writeBatch(batch))) return;
      left -= batch.length;
      this.#entries.splice(0, batch.length);
      for (const { size } of batch) this.#chars -= size;
      await nextTurn();
    }
    this.#sweep();
  }

  /** @returns false when it has to be tried again later */
  async #writeBatch(batch: readonly QueuedEntry[]): Promise<boolean> {
    try {
      const file = await this.#options.open();
      await file.write(batch);
      this.#failures = 0;
      return true;
    } catch (error) {
      // What the file could not take now it may take later.
      if (retryOf(error) === 'later') return this.#fail(error);
      if (batch.length > 1) return this.#writeEach(batch);
      for (const { run } of batch) this.drop(run, toErrorData(error).message);
      return true;
    }
  }

  /** Something in it cannot be written at all: only that is dropped. */
  async #writeEach(batch: readonly QueuedEntry[]): Promise<boolean> {
    const written: QueuedEntry[] = [];
    for (const queued of batch) {
      const isDone = await this.#writeBatch([queued]);
      if (isDone) written.push(queued);
      else break;
    }
    if (written.length === batch.length) return true;
    this.#entries = this.#entries.filter((queued) => !written.includes(queued));
    return false;
  }

  #fail(error: unknown): false {
    this.#failures += 1;
    if (this.#failures === 1) {
      this.#options.warn('audit: its file cannot be written; what is recorded waits', { error: toErrorData(error) });
    }
    return false;
  }

  /** Removes what is too old, now and then, a little at a time. Nobody waits for it. */
  async #sweep(): Promise<void> {
    const { clock, retentionMs, open } = this.#options;
    if (retentionMs === Number.POSITIVE_INFINITY || clock.monotonic() - this.#sweptAt < HOUR_MS) return;
    this.#sweptAt = clock.monotonic();
    try {
      const file = await open();
      while (!this.#isClosed && (await file.removeOld(clock.now() - retentionMs))) await nextTurn();
    } catch {
      // The next sweep, or the next write, tells whether there is something to say.
    }
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#flushing || this.#isClosed) return;
    const ms = this.#failures === 0 ? DELAY_MS : backoffMs(this.#failures, backoff);
    this.#timer = this.#options.clock.setTimeout(() => void this.flush(), ms);
    // What waits is worth a moment at the end of a process, but not the wait for a file that cannot be written.
    if (this.#failures > 0) unref(this.#timer);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The clock of a test gives timers without it. */
function unref(timer: unknown): void {
  const { unref } = (timer ?? {}) as { unref?: () => void };
  unref?.call(timer);
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
