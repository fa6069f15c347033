import { type OutcomeFiles, SPAN_MS } from './file-outcomes.ts';
import { nameRun, type WriteQueues } from './file-queue.ts';

/** Removes outcomes whose time is over: with the first one that is kept, and from then on once an hour. */
export class OutcomeSweep {
  readonly #outcomes: OutcomeFiles;
  readonly #queues: WriteQueues;
  readonly #now: () => number;
  #nextAt = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> = Promise.resolve();

  constructor(outcomes: OutcomeFiles, queues: WriteQueues, now: () => number) {
    this.#outcomes = outcomes;
    this.#queues = queues;
    this.#now = now;
  }

  /** Nobody waits for it, and what goes wrong goes better the next time. */
  begin(): void {
    const now = this.#now();
    if (now < this.#nextAt) return;
    this.#nextAt = now + SPAN_MS;
    this.#underWay = this.#underWay.then(() => this.#sweep()).catch(() => {});
  }

  async end(): Promise<void> {
    await this.#underWay;
  }

  async #sweep(): Promise<void> {
    await this.#outcomes.eachDue(async (runIds) => {
      for (const runId of runIds) await this.#queues.add(nameRun(runId), (session) => session.forgetOutcome());
    });
  }
}
