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
    this.#next().catch(() => {});
  }

  /** @returns how many outcomes were past their time; they are removed, unless they are only counted */
  async all(isOnlyCounted: boolean): Promise<number> {
    return isOnlyCounted ? this.#outcomes.countDue() : this.#next();
  }

  #next(): Promise<number> {
    const sweeping = this.#underWay.then(() => this.#sweep());
    this.#underWay = sweeping.then(nothing, nothing);
    return sweeping;
  }

  async end(): Promise<void> {
    await this.#underWay;
  }

  async #sweep(): Promise<number> {
    let count = 0;
    await this.#outcomes.eachDue(async (runIds) => {
      count += runIds.length;
      for (const runId of runIds) await this.#queues.add(nameRun(runId), (session) => session.forgetOutcome());
    });
    return count;
  }
}

function nothing(): void {}
