import { setImmediate } from 'node:timers';
import type { Decide } from './changes.ts';
import type { Sent } from './write.ts';

/** Groups that are on their way at once, each over a connection of its own: a large one does not hold up all others. */
const LANES = 2;

/** Bounds of a group: runs, and characters. One that is larger by itself goes alone. */
const MAX_GROUP = 128;
const MAX_GROUP_CHARS = 2 ** 23;

/** A write to one run, waiting or on its way. */
export interface Job<T = unknown> {
  readonly runId: string;
  readonly decide: Decide<T>;
  /** Characters, about. */
  readonly size: number;
  /** It names the claim it is made with, so that what was written last may be taken as still there: see `Writer`. */
  readonly hasClaim: boolean;
  readonly signal: AbortSignal | undefined;
  /** When it is given up, on the clock of `performance.now()`. */
  readonly until: number;
  /** What was sent for it without an answer, by token: nobody knows yet whether it landed. */
  readonly sent: Map<number, SentJob>;
  readonly promise: Promise<T>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** What was sent for a job, and the answer that it gets when it has landed. */
export interface SentJob extends Sent {
  readonly value: unknown;
}

/** Settles each job of a group; never rejects. @param takeLate takes out what waits in vain */
type Perform = (group: readonly Job[], takeLate: () => readonly Job[]) => Promise<void>;

/**
 * Collects the writes of one turn of the event loop, and hands them over in groups. A group has one write of each run; of
 * the writes of one run each waits for the one before.
 */
export class WriteQueue {
  readonly #perform: Perform;
  readonly #waitMs: number;
  readonly #busy = new Set<string>();
  readonly #unsettled = new Set<Job>();
  #jobs: Job[] = [];
  #lanes = 0;
  #isScheduled = false;

  /** @param waitMs how long a write is tried */
  constructor(perform: Perform, waitMs: number) {
    this.#perform = perform;
    this.#waitMs = waitMs;
  }

  add<T>(write: Pick<Job<T>, 'runId' | 'decide' | 'size' | 'hasClaim' | 'signal'>): Promise<T> {
    const { runId, decide, size, hasClaim, signal } = write;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const until = performance.now() + this.#waitMs;
    const job = { runId, decide, size, hasClaim, signal, until, sent: new Map(), promise, resolve, reject } as Job;
    this.#jobs.push(job);
    this.#unsettled.add(job);
    this.#schedule();
    return promise;
  }

  /** Resolves when the writes that were asked for before have settled: those of one run, or all. */
  async settled(runId?: string): Promise<void> {
    const before = [...this.#unsettled].filter((job) => runId === undefined || job.runId === runId);
    await Promise.allSettled(before.map((job) => job.promise));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#lanes >= LANES || this.#jobs.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#start();
    });
  }

  #start(): void {
    const group = this.#takeGroup();
    if (group.length === 0) return;
    this.#lanes += 1;
    for (const { runId } of group) this.#busy.add(runId);
    void this.#perform(group, () => this.#takeLate()).then(() => {
      this.#lanes -= 1;
      for (const job of group) {
        this.#busy.delete(job.runId);
        this.#unsettled.delete(job);
      }
      this.#schedule();
    });
  }

  /** In the order in which they were asked for, but none before another one of its run. */
  #takeGroup(): Job[] {
    const [only] = this.#jobs;
    if (only && this.#jobs.length === 1 && !this.#busy.has(only.runId)) return this.#jobs.splice(0);
    const group: Job[] = [];
    const left: Job[] = [];
    const passed = new Set(this.#busy);
    let size = 0;
    for (const job of this.#jobs) {
      const isFull = group.length > 0 && (group.length >= MAX_GROUP || size + job.size > MAX_GROUP_CHARS);
      if (isFull || passed.has(job.runId)) {
        left.push(job);
      } else {
        group.push(job);
        size += job.size;
      }
      passed.add(job.runId);
    }
    this.#jobs = left;
    return group;
  }

  /** Takes out what waited for its turn until its time was over. */
  #takeLate(): Job[] {
    const now = performance.now();
    const late = this.#jobs.filter((job) => job.until <= now);
    if (late.length > 0) this.#jobs = this.#jobs.filter((job) => job.until > now);
    for (const job of late) this.#unsettled.delete(job);
    return late;
  }
}
