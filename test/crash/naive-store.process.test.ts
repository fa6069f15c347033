import { beforeAll, describe, expect, test } from 'vitest';
import type { Lie } from '../fixtures/naive-store.ts';
import { brokenPromises } from './promises.ts';
import { randomFrom, seed } from './random.ts';
import { calibrated, inTurn, runTrial, type Stop, type Undisturbed } from './trial.ts';

const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

describe('the same checks, on a store that lies (recovery 9)', () => {
  let undisturbed: Undisturbed;
  beforeAll(async () => {
    undisturbed = await calibrated(job);
  }, 180_000);

  const random = randomFrom(seed);
  /** A few kills, spread over the run, one of them after a `once` call took effect, and what the checks say of them. */
  const judge = async (lies: readonly Lie[], tookMs = undisturbed.tookMs) => {
    const moments = Array.from({ length: 2 }, (_, i) => ((i + random()) / 2) * tookMs);
    const amidEffects: Stop = { failpoint: { name: 'after a call with effect once', nth: 4 } };
    const stops = [amidEffects, ...moments.map((afterMs): Stop => ({ signal: 'SIGKILL', afterMs }))];
    const trials = await Promise.all(stops.map((stop) => inTurn(() => runTrial({ ...job, lies }, [stop]))));
    expect(trials.some((trial) => trial.deaths.some((death) => death.isMidRun))).toBe(true);
    return [...new Set(trials.flatMap((trial) => brokenPromises(trial, undisturbed.result)))];
  };

  test('fail when acknowledged writes land late: what was saved is lost, or runs again', async () => {
    // Which of the two is seen depends on whether the lost write was followed by another one.
    const isSeen = (what: string) => /^(more than the open step was redone|a saved step is lost)/.test(what);
    const broken = await judge(['late']);
    // All may have died right after a write had landed; or too late, on a machine that is suddenly fast.
    for (let { tookMs } = undisturbed; tookMs > 5 && !broken.some(isSeen); tookMs /= 2) {
      broken.push(...(await judge(['late'], tookMs)));
    }
    console.log(`late: ${broken.length} complaints, for example: ${broken[0]}`);
    expect(broken.some(isSeen)).toBe(true);
  }, 180_000);

  test('fail when the open step is forgotten: a once tool begins twice', async () => {
    const broken = await judge(['forgetful']);
    console.log(`forgetful: ${broken.length} complaints, for example: ${broken[0]}`);
    expect(broken.some((what) => what.startsWith('a call of a once tool began'))).toBe(true);
  }, 180_000);
});
