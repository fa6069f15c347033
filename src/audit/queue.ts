import { type Backoff, backoffMs } from '../values/backoff.ts';
import type { Clock } from '../values/clock.ts';
import { retryOf, toErrorData } from '../values/error-data.ts';
import { nextTurn } from '../values/event-loop.ts';

import { type Entry, type QueuedEntry, type RunHandle, type RunRow, sizeOf } from './entries.ts';

/** The file of the entries. A batch is written completely or not at all. */
export interface EntryFile {
  write(batch: readonly QueuedEntry[]): Promise<void>;
  /** Removes some of the old runs. @returns whether there may be more */
  removeOld(before: number): Promise<boolean>;
}

export interface QueueOptions {
  readonly clock: Clock;
  /** Opens the file at the first use. */
  readonly open: () => Promise<EntryFile>;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** How long ended runs are kept, ms. */
  readonly retentionMs: number;
}

/** Entries that arrive within this time are written together, ms. */
const DELAY_MS = 50;

/** The time until a retry if the file cannot be written; it doubles with each failure. */
const backoff: Backoff = { firstMs: 500, maxMs: 30_000 };

/** The most queued entries; further entries are dropped and counted. */
const MAX_ENTRIES = 20_000;
const MAX_CHARS = 64 * 1024 * 1024;

/** One transaction writes at most this many entries, so that it does not block the event loop for long. */
const MAX_BATCH = 256;

const HOUR_MS = 3_600_000;

/**
 * The queue of audit entries that are not in the file yet; a full queue drops and counts further ones. Only the end of a
 * run and queries wait for it.
 */
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

  /** The number of dropped entries. */
  get dropped(): number {
    return this.#dropped;
  }

  add(waiting: { readonly run: RunHandle; readonly row: RunRow; readonly entry: Entry }): void {
    const size = sizeOf(waiting.entry);
    const isFull = this.#entries.length >= MAX_ENTRIES || this.#chars + size > MAX_CHARS;
    if (this.#isClosed || isFull) {
      this.drop(waiting.run, this.#isClosed ? 'it was closed' : 'its file is too slow, or cannot be written');
      return;
    }
    this.#entries.push({ ...waiting, size });
    this.#chars += size;
    this.#schedule();
  }

  /** Drops an entry. Each reason is logged once. */
  drop(run: RunHandle, why: string): void {
    run.dropped += 1;
    this.#dropped += 1;
    if (this.#reasons.has(why)) return;
    this.#reasons.add(why);
    this.#options.warn(`audit: entries are dropped: ${why}`, { waiting: this.#entries.length });
  }

  /** Writes the queued entries. Resolves when they are written or the write has failed; never rejects. */
  flush(): Promise<void> {
    if (!this.#flushing) return this.#begin();
    // Entries that arrived during a write need another one, which all callers meanwhile share.
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

  /** Writes a batch of entries to the audit's file. @returns false if it must be tried again later */
  async #writeBatch(batch: readonly QueuedEntry[]): Promise<boolean> {
    try {
      const file = await this.#options.open();
      await file.write(batch);
      this.#failures = 0;
      return true;
    } catch (error) {
      // The file may accept the batch later.
      if (retryOf(error) === 'later') return this.#fail(error);
      if (batch.length > 1) return this.#writeEach(batch);
      for (const { run } of batch) this.drop(run, toErrorData(error).message);
      return true;
    }
  }

  /** Writes entry by entry, and drops only those that cannot be written. */
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
      this.#options.warn('audit: its file cannot be written; entries are queued', { error: toErrorData(error) });
    }
    return false;
  }

  /** Removes old runs now and then, a few at a time. No caller waits for it. */
  async #sweep(): Promise<void> {
    const { clock, retentionMs, open } = this.#options;
    if (retentionMs === Number.POSITIVE_INFINITY || clock.monotonic() - this.#sweptAt < HOUR_MS) return;
    this.#sweptAt = clock.monotonic();
    try {
      const file = await open();
      while (!this.#isClosed && (await file.removeOld(clock.now() - retentionMs))) await nextTurn();
    } catch {
      // The next sweep or write reports the failure.
    }
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#flushing || this.#isClosed) return;
    const ms = this.#failures === 0 ? DELAY_MS : backoffMs(this.#failures, backoff);
    this.#timer = this.#options.clock.setTimeout(() => void this.flush(), ms);
    // At the end of a process, a queued write is worth a moment, but not the wait for a file that cannot be written.
    if (this.#failures > 0) unref(this.#timer);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The timers of a test clock have no `unref`. */
function unref(timer: unknown): void {
  const { unref } = (timer ?? {}) as { unref?: () => void };
  unref?.call(timer);
}
