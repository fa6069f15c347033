import { beforeAll, expect } from 'vitest';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import {
  type Around,
  calibrated,
  type Death,
  inTurn,
  killsFrom,
  type RunJob,
  runTrial,
  type Stop,
  type Trial,
  type Undisturbed,
} from './trial.ts';

/** Trials of one job that were killed at random moments, until so many kills have landed. */
export class RandomKills {
  readonly #kills: number;
  readonly #trials: Trial[] = [];
  #undisturbed: Undisturbed | undefined;

  private constructor(kills: number) {
    this.#kills = kills;
  }

  /** Runs the trials before the tests of the `describe` in which it is called. @param kills by default; more under torture */
  static of(job: RunJob, { kills, around }: { kills: number; around?: Around }): RandomKills {
    const all = new RandomKills(kills * torture);
    beforeAll(() => all.#run(job, around), 180_000 * torture);
    return all;
  }

  async #run(job: RunJob, around: Around | undefined): Promise<void> {
    const undisturbed = await calibrated(job, around);
    this.#undisturbed = undisturbed;
    const random = randomFrom(seed);
    const plans = Array.from({ length: 3 * this.#kills }, () => killsFrom(random, undisturbed.tookMs));
    const one = async (stops: readonly Stop[]) => {
      if (this.deaths.length < this.#kills) this.#trials.push(await runTrial(job, stops, around));
    };
    await Promise.all(plans.map((stops) => inTurn(() => one(stops))));
  }

  get undisturbed(): Undisturbed {
    if (!this.#undisturbed) throw new Error('nothing has run yet');
    return this.#undisturbed;
  }

  get deaths(): readonly Death[] {
    return this.#trials.flatMap((trial) => trial.deaths);
  }

  get midRun(): readonly Death[] {
    return this.deaths.filter((death) => death.isMidRun);
  }

  /** Every promise held in every trial, and every result is that of the undisturbed run. */
  expectUnbroken(): void {
    const broken = this.#trials.map((trial) => brokenPromises(trial, this.undisturbed.result));
    expect(
      broken.filter((each) => each.length > 0),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  }

  /** Kills that all came too early or too late would show nothing. */
  expectKilled(): void {
    const { deaths, midRun } = this;
    console.log(`seed ${seed}: ${this.#trials.length} runs, ${deaths.length} kills, ${midRun.length} of them mid-run`);
    expect(deaths.length).toBeGreaterThanOrEqual(this.#kills);
    expect(midRun.length).toBeGreaterThan(this.#kills / 4);
  }
}
