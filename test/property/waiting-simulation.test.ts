import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { waitingStories } from './waiting-plans.ts';
import { WaitingWorld } from './waiting-world.ts';

/** More are drawn until every kind of end has been met. */
const HISTORIES = torture > 1 ? 2_000 : 8;
const MOST_ROUNDS = 8;

/** Ends of waits that the histories must have met: one that was never met proves nothing. */
const kinds = [
  ...['approval approve', 'approval deny', 'approval expire', 'question answer', 'event signal', 'a process died'],
  // So rare that a few histories may do without.
  ...(torture > 1 ? ['question expire', 'event expire', 'timer expire', 'timer wake', 'child ended'] : []),
];

test(
  `in at least ${HISTORIES} random histories of runs that wait, with three processes that die between any two writes, answers that come twice, late and from two persons, and a model that is away, an approved once call runs once, a denied or expired one never, and each answer in time is read (seed ${seed}) (waiting 32, 35)`,
  async () => {
    const met = new Map<string, number>();
    const isKept = fc.asyncProperty(waitingStories, async (story) => {
      const { complaints, ends, deaths, status } = await new WaitingWorld(story).play();
      expect(complaints).toEqual([]);
      for (const kind of [...ends, `run ${status}`]) met.set(kind, (met.get(kind) ?? 0) + 1);
      if (deaths > 0) met.set('a process died', (met.get('a process died') ?? 0) + 1);
    });
    const isMissing = () => kinds.some((kind) => !met.has(kind));
    for (let round = 0; round === 0 || (isMissing() && round < MOST_ROUNDS); round++) {
      await fc.assert(isKept, { numRuns: HISTORIES, seed: seed + round, endOnFailure: torture === 1 });
    }
    console.log(`seed ${seed}: at least ${HISTORIES} histories, ${JSON.stringify(Object.fromEntries(met))}`);
    for (const kind of kinds) expect(met.get(kind) ?? 0, kind).toBeGreaterThan(0);
  },
  torture > 1 ? 3_600_000 : 180_000,
);
