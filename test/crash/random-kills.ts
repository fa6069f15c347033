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
  type Trial,
  type Undisturbed,
} from './trial.ts';

export interface RandomKillsOptions {
  /** Under torture ten times as many land; by default a third of them. */
  readonly kills: number;
  readonly around?: Around;
  /** What else these kills have to have met with. */
  readonly isVaried?: (midRun: readonly Death[]) => boolean;
}

/**
 * Trials of one job that were killed at random moments, until so many kills have landed, and enough of them in the middle:
 * so few draws may well be unlucky, and a machine that is suddenly fast has its runs over before they are killed.
 */
export class RandomKills {
  readonly #kills: number;
  readonly #isVaried: (midRun: readonly Death[]) => boolean;
  readonly #trials: Trial[] = [];
  #undisturbed: Undisturbed | undefined;

  private constructor({ kills, isVaried = () => true }: RandomKillsOptions) {
    this.#kills = torture > 1 ? kills * torture : Math.ceil(kills / 3);
    this.#isVaried = isVaried;
  }

  /** Runs the trials before the tests of the `describe` in which it is called. */
  static of(job: RunJob, options: RandomKillsOptions): RandomKills {
    const all = new RandomKills(options);
    beforeAll(() => all.#run(job, options.around), 240_000 * torture);
    return all;
  }

  async #run(job: RunJob, around: Around | undefined): Promise<void> {
    const undisturbed = await calibrated(job, around);
    this.#undisturbed = undisturbed;
    const random = randomFrom(seed);
    let { tookMs } = undisturbed;
    const one = async () => {
      if (this.#isEnough) return;
      const trial = await runTrial(job, killsFrom(random, tookMs), around);
      this.#trials.push(trial);
      // It was over before it was killed: the machine has become faster.
      if (trial.deaths.length === 0) tookMs = Math.min(tookMs, trial.tookMs);
    };
    await Promise.all(Array.from({ length: 6 * this.#kills }, () => inTurn(one)));
  }

  get undisturbed(): Undisturbed {
    if (!this.#undisturbed) throw new Error('nothing has run yet');
    return this.#undisturbed;
  }

  get #isEnough(): boolean {
    const { deaths, midRun } = this;
    return deaths.length >= this.#kills && midRun.length > this.#kills / 4 && this.#isVaried(midRun);
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
