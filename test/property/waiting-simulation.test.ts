import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { waitingStories } from './waiting-plans.ts';
import { WaitingWorld } from './waiting-world.ts';

const HISTORIES = torture > 1 ? 2_000 : 8;

/** Ends of waits that the histories must have met: one that was never met proves nothing. */
const kinds = [
  ...['approval approve', 'approval deny', 'approval expire', 'question answer', 'event signal', 'a process died'],
  // So rare that a few histories may do without.
  ...(torture > 1 ? ['question expire', 'event expire', 'timer expire', 'timer wake', 'child ended'] : []),
];

test(
  `in ${HISTORIES} random histories of runs that wait, with three processes that die between any two writes, answers that come twice, late and from two persons, and a model that is away, an approved once call runs once, a denied or expired one never, and each answer in time is read (seed ${seed}) (waiting 32, 35)`,
  async () => {
    const met = new Map<string, number>();
    const isKept = fc.asyncProperty(waitingStories, async (story) => {
      const { complaints, ends, deaths, status } = await new WaitingWorld(story).play();
      expect(complaints).toEqual([]);
      for (const kind of [...ends, `run ${status}`]) met.set(kind, (met.get(kind) ?? 0) + 1);
      if (deaths > 0) met.set('a process died', (met.get('a process died') ?? 0) + 1);
    });
    await fc.assert(isKept, { numRuns: HISTORIES, seed, endOnFailure: torture === 1 });
    console.log(`seed ${seed}: ${HISTORIES} histories, ${JSON.stringify(Object.fromEntries(met))}`);
    for (const kind of kinds) expect(met.get(kind) ?? 0, kind).toBeGreaterThan(0);
  },
  torture > 1 ? 3_600_000 : 180_000,
);
