import type { OutcomeFiles } from './outcomes.ts';
import { nameRun, type WriteQueues } from './queue.ts';

/** Removes outcomes whose time is over. One sweep is under way at a time. */
export class OutcomeSweep {
  readonly #outcomes: OutcomeFiles;
  readonly #queues: WriteQueues;
  #isBegun = false;
  #underWay: Promise<void> = Promise.resolve();

  constructor(outcomes: OutcomeFiles, queues: WriteQueues) {
    this.#outcomes = outcomes;
    this.#queues = queues;
  }

  /** Sweeps for the first time; returns at once. What could not be removed is tried again with the next minute. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
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

  /** Waits for the sweep that is under way. */
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
