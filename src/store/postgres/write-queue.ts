import { setImmediate } from 'node:timers';
import type { StoreWrite } from '../store-driver.ts';
import type { SentWrite } from './write-statement.ts';

/** Groups that are written at once, each over its own connection: a large group does not block all others. */
const LANES = 2;

/** Bounds of a group: runs, and characters. A larger write forms a group alone. */
const MAX_GROUP = 128;
const MAX_GROUP_CHARS = 2 ** 23;

/** A write to one run, waiting or being sent. */
export interface WriteJob<T = unknown> extends StoreWrite<T> {
  readonly signal: AbortSignal | undefined;
  /** When it is given up, on the clock of `performance.now()`. */
  readonly until: number;
  /** Requests without an answer, by token: it is unknown whether they were stored. */
  readonly sent: Map<number, SentJob>;
  readonly promise: Promise<T>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** A request of a job, and the job's answer if it was stored. */
export interface SentJob extends SentWrite {
  readonly value: unknown;
}

/** Other work on a run that waits for its turn among the writes of the run. */
interface Turn {
  readonly runId: string;
  begin(): void;
}

/** Settles each job of a group; never rejects. @param takeLate removes jobs whose time is over */
type Perform = (group: readonly WriteJob[], takeLate: () => readonly WriteJob[]) => Promise<void>;

/**
 * Collects the writes to PostgreSQL of one turn of the event loop, and passes them on in groups. A group has one write of
 * each run; each write of a run waits for the one before.
 */
export class WriteQueue {
  readonly #perform: Perform;
  readonly #waitMs: number;
  readonly #busy = new Set<string>();
  readonly #unsettled = new Set<WriteJob>();
  #jobs: (WriteJob | Turn)[] = [];
  #lanes = 0;
  #isScheduled = false;

  /** @param waitMs how long a write is retried */
  constructor(perform: Perform, waitMs: number) {
    this.#perform = perform;
    this.#waitMs = waitMs;
  }

  add<T>(write: StoreWrite<T>, signal: AbortSignal | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const until = performance.now() + this.#waitMs;
    const job = { ...write, signal, until, sent: new Map(), promise, resolve, reject } as WriteJob;
    this.#jobs.push(job);
    this.#unsettled.add(job);
    this.#schedule();
    return promise;
  }

  /** Does other work on a run after its earlier writes; later ones wait for it. @param work never rejects */
  async inTurn(runId: string, work: () => Promise<void>): Promise<void> {
    await new Promise<void>((begin) => {
      this.#jobs.push({ runId, begin });
      this.#schedule();
    });
    await work();
    this.#busy.delete(runId);
    this.#schedule();
  }

  /** Resolves when the earlier writes have settled: those of one run, or all. */
  async settle(runId?: string): Promise<void> {
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

  /** In the order of the requests, but no write before an earlier one of its run. */
  #takeGroup(): WriteJob[] {
    const [only] = this.#jobs;
    if (only && this.#jobs.length === 1 && !('begin' in only) && !this.#busy.has(only.runId)) {
      this.#jobs = [];
      return [only];
    }
    const group: WriteJob[] = [];
    const left: (WriteJob | Turn)[] = [];
    const passed = new Set(this.#busy);
    let size = 0;
    for (const job of this.#jobs) {
      if ('begin' in job) {
        if (passed.has(job.runId)) left.push(job);
        else this.#begin(job);
        passed.add(job.runId);
        continue;
      }
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

  #begin({ runId, begin }: Turn): void {
    this.#busy.add(runId);
    begin();
  }

  /** Removes the jobs that waited until their time was over. */
  #takeLate(): WriteJob[] {
    const now = performance.now();
    const late = this.#jobs.filter((job): job is WriteJob => 'until' in job && job.until <= now);
    if (late.length > 0) this.#jobs = this.#jobs.filter((job) => !late.includes(job as WriteJob));
    for (const job of late) this.#unsettled.delete(job);
    return late;
  }
}
