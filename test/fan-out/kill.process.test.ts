import { beforeAll, describe, expect, test } from 'vitest';
import { randomFrom, seed, torture } from '../crash/random.ts';
import { inTurn } from '../crash/trial.ts';
import { type Kill, type KillTrial, killTrial } from './kill-trial.ts';

const KILLS = torture === 1 ? 3 : 200;
const trials: KillTrial[] = [];
let undisturbed: KillTrial;

/** Up to four kills of one fan-out: the later ones hit processes that go on with it. Most are aimed at the work. */
function killsOf(random: () => number, tookMs: number): Kill[] {
  return Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
    from: random() < 0.2 ? 'started' : 'working',
    afterMs: random() * 0.95 * tookMs,
  }));
}

describe(`four models at once, killed with SIGKILL at random moments (seed ${seed})`, () => {
  const killed = () => trials.reduce((sum, { kills }) => sum + kills, 0);
  const killedAmid = () => trials.reduce((sum, { midKills }) => sum + midKills, 0);
  const isKilledAgain = () => trials.some(({ kills }) => kills > 1);
  // Few draws may well be unlucky: more are made until enough have met with what they are for.
  const isEnough = () => killed() >= KILLS && killedAmid() > KILLS / 4 && isKilledAgain();

  beforeAll(async () => {
    // The first fills a compile cache.
    await killTrial([]);
    undisturbed = await killTrial([]);
    const random = randomFrom(seed);
    let { tookMs } = undisturbed;
    const one = async () => {
      if (isEnough()) return;
      const trial = await killTrial(killsOf(random, tookMs));
      trials.push(trial);
      // It was over before it was killed: the machine has become faster.
      if (trial.kills === 0) tookMs = Math.min(tookMs, trial.tookMs);
    };
    await Promise.all(Array.from({ length: Math.max(40, 5 * KILLS) }, () => inTurn(one)));
  }, 240_000 * torture);

  test('the file is whole at every instant, completed models are never asked again, also after the end, and no turn is lost (fan-out 5, faults 33, edges 25)', () => {
    expect(
      trials.flatMap(({ wrongs }) => wrongs),
      `PAWL_SEED=${seed}`,
    ).toEqual([]);
  });

  test('answers, proposed writes and totals are those of the undisturbed run (fan-out 5)', () => {
    expect(undisturbed.result?.responses.map(({ stopReason }) => stopReason)).toEqual(Array(4).fill('answered'));
    for (const { result } of trials) expect(result, `PAWL_SEED=${seed}`).toEqual(undisturbed.result);
  });

  test('the kills landed, often in the middle of the work and some of them in a process that continued (fan-out 5)', () => {
    const mid = killedAmid();
    const reads = trials.reduce((sum, each) => sum + each.reads, 0);
    console.log(`seed ${seed}: ${trials.length} fan-outs, ${killed()} kills, ${mid} of them mid-work, ${reads} reads`);
    expect(killed()).toBeGreaterThanOrEqual(KILLS);
    expect(mid).toBeGreaterThan(KILLS / 4);
    expect(isKilledAgain()).toBe(true);
    expect(reads).toBeGreaterThan(KILLS);
  });

  test.for([
    ['forgetful', /was asked again|went back/],
    ['in-place', /a reader saw/],
  ] as const)(
    'the same checks see what a %s one does wrong (fan-out 5)',
    { timeout: 180_000 },
    async ([naive, complaint]) => {
      const killsWithin = (ms: number) =>
        [0.5, 0.6, 0.7].map((part) => ({ from: 'working', afterMs: part * ms }) as const);
      const found: string[] = [];
      // A kill may come too late on a machine that is suddenly fast.
      let { tookMs } = undisturbed;
      for (let tries = 0; tries < 10 && !complaint.test(found.join('\n')); tries++) {
        found.push(...(await killTrial(killsWithin(tookMs), naive)).wrongs);
        tookMs *= 0.7;
      }
      expect(found.join('\n')).toMatch(complaint);
    },
  );
});
