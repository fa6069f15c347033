import type { Clock } from '../../values/clock.ts';
import { MINUTE_MS, Minutely } from '../minutely.ts';
import type { OutcomeFiles } from './outcomes.ts';
import { nameRun, type WriteQueues } from './queue.ts';

/** Removes outcomes whose time is over: with the first write of this process, and from then on once a minute. */
export class OutcomeSweep {
  readonly #outcomes: OutcomeFiles;
  readonly #queues: WriteQueues;
  readonly #clock: Clock;
  readonly #minutely: Minutely;
  #nextAt = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> = Promise.resolve();

  constructor(outcomes: OutcomeFiles, queues: WriteQueues, clock: Clock) {
    this.#outcomes = outcomes;
    this.#queues = queues;
    this.#clock = clock;
    this.#minutely = new Minutely(clock, () => this.#start());
  }

  /** Returns at once. What could not be removed is tried again the next time. */
  begin(): void {
    if (this.#clock.now() < this.#nextAt) return;
    this.#minutely.begin();
    this.#start();
  }

  #start(): void {
    this.#nextAt = this.#clock.now() + MINUTE_MS;
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
    this.#minutely.end();
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
