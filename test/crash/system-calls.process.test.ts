import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunResult } from 'pawl';
import { beforeAll, describe, expect, test } from 'vitest';
import { closed } from './child-end.ts';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed, torture } from './random.ts';
import { Meddling, type Moment, momentsOf, whyNoStrace } from './system-calls.ts';
import { inTurn, type RunJob, runTrial, startWorker, type Trial } from './trial.ts';

const job = { runId: 'run-1', agent: 'twelve-tools' } as const;
/** A few moments, drawn anew each time; all of them with PAWL_TORTURE. */
const KILLS = 3;
const ERRORS = 1;
/** A run is not the same to the last call each time: a moment may not come. So many more are tried then. */
const DRAWN_AGAIN = 8;
const limit = { timeout: torture > 1 ? 1_800_000 : 180_000 };

describe.skipIf(whyNoStrace)(`a run of twelve tools on SQLite (seed ${seed})`, () => {
  let undisturbed: RunResult;
  let moments: readonly Moment[];
  beforeAll(async () => {
    const { result, complaints } = await runTrial(job, []);
    if (result?.status !== 'ok') throw new Error(`the undisturbed run failed: ${JSON.stringify(result)} ${complaints}`);
    undisturbed = result;
    moments = await momentsIn(job);
  }, 180_000);

  type What = ConstructorParameters<typeof Meddling>[1];
  const meddledAt = (moment: Moment, what: What) =>
    inTurn(async () => {
      const meddling = new Meddling(moment, what);
      const trial = await runTrial(job, [meddling]);
      return { name: `${moment.call} ${moment.nth}`, trial, isFired: meddling.fired() };
    });

  /** Meddles with the first process of a trial each, at some of these moments; for one that did not come, at another. */
  const meddled = async (all: readonly Moment[], count: number, what: What) => {
    if (torture > 1) return Promise.all(all.map((moment) => meddledAt(moment, what)));
    const trials = await Promise.all(sample(all, count).map((moment) => meddledAt(moment, what)));
    for (const moment of sample(all, DRAWN_AGAIN)) {
      if (trials.filter(({ isFired }) => isFired).length >= count) break;
      trials.push(await meddledAt(moment, what));
    }
    return trials;
  };

  test(
    'that is killed right before it changes a file continues as if nothing had happened (recovery 5, faults 1)',
    limit,
    async () => {
      const trials = await meddled(moments, KILLS, 'signal=SIGKILL');
      const broken = trials.flatMap(({ name, trial }) =>
        brokenPromises(trial, undisturbed).map((promise) => `${name}: ${promise}`),
      );
      expect(broken, `PAWL_SEED=${seed}`).toEqual([]);
      report(trials, { atLeast: KILLS, what: 'SIGKILL' });
    },
  );

  test.for(['EIO', 'ENOSPC'] as const)(
    'whose disk answers %s once ends all the same, and no call begins twice (faults 3, 4)',
    limit,
    async (error) => {
      const failing = moments.filter(({ call }) => ['pwrite64', 'fdatasync', 'fsync'].includes(call));
      const trials = await meddled(failing, ERRORS, `error=${error}`);
      const broken = trials.flatMap(({ name, trial }) =>
        brokenByError(trial, undisturbed).map((promise) => `${name}: ${promise}`),
      );
      expect(broken, `PAWL_SEED=${seed}`).toEqual([]);
      report(trials, { atLeast: ERRORS, what: error });
    },
  );
});

/**
 * What must not come of an error of the disk. A run that could not be recorded at all is refused before it does anything, or
 * goes on without a record, and says so; a record that could not be removed holds the outcome, which the next boot delivers.
 */
function brokenByError(trial: Trial, undisturbed: RunResult): string[] {
  const { result, ledger, left } = trial;
  const isUnrecorded = result?.durable === false && ledger.every(({ phase }) => phase !== 'saved');
  const isRefused = isUnrecorded && /^STORE_/.test(result?.error?.code ?? '');
  if (isRefused) return ledger.length === 0 ? [] : ['a run was refused after it had begun'];
  const { durable } = isUnrecorded ? { durable: true } : { durable: result?.durable ?? false };
  const seen = { ...trial, result: result && { ...result, durable, saveErrors: 0 } };
  return brokenPromises({ ...seen, left: left?.outcome ? null : left }, undisturbed);
}

/** Moments from all of the run. */
function sample<T>(all: readonly T[], count: number): T[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, (_, i) => all[Math.floor(((i + random()) / count) * all.length)] as T);
}

async function momentsIn(job: RunJob): Promise<Moment[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-strace-'));
  const moments = await momentsOf(folder, (under) => closed(startWorker({ ...job, folder }, under)));
  rmSync(folder, { recursive: true, force: true });
  return moments;
}

/** Of all moments most come. */
function report(
  trials: readonly { readonly isFired: boolean; readonly trial: Trial }[],
  { atLeast, what }: { readonly atLeast: number; readonly what: string },
): void {
  const fired = trials.filter(({ isFired }) => isFired).length;
  const unfinished = trials.filter(({ trial }) => trial.deaths.length > 0).length;
  if (torture > 1) console.log(`${what}: ${fired} of ${trials.length} fired, ${unfinished} before the run's end`);
  expect(fired, 'faults that fired').toBeGreaterThanOrEqual(torture > 1 ? trials.length * 0.6 : atLeast);
}
