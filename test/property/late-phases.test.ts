import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { type Lived, Simulation } from './simulation.ts';
import { type Misfortune, type Story, stories } from './simulation-plans.ts';
import { type Fired, fire } from './simulation-store.ts';

const STORIES = torture > 1 ? 1_000 : 30;
const MOST_ROUNDS = 8;

/** The store refuses some writes from the end of a phase on, and the process dies meanwhile, or soon after. */
const misfortune: fc.Arbitrary<Misfortune> = fc.record({
  stops: fc.tuple(
    fc.record({
      at: fc.nat(12),
      how: fc.constantFrom('crash', 'crash', 'shutdown'),
      isFromPhaseEnd: fc.constant(true),
    }),
    fc.record({ at: fc.nat(20), how: fc.constantFrom('crash', 'shutdown') }),
  ),
  faults: fc.constant([]),
  outage: fc.constant(undefined),
  latency: fc.oneof(fc.constant([0]), fc.array(fc.constantFrom(0, 1, 40), { minLength: 1, maxLength: 5 })),
  jumps: fc.constant([]),
  phaseEnd: fc.record({ nth: fc.integer({ min: 1, max: 3 }), writes: fc.integer({ min: 1, max: 12 }) }),
}) as fc.Arbitrary<Misfortune>;

const pipelines: fc.Arbitrary<Story> = fc
  .tuple(stories, fc.array(misfortune, { minLength: 1, maxLength: 4 }))
  .map(([story, misfortunes]) => ({ ...story, isPipeline: true, family: undefined, throttleMs: 0, misfortunes }));

/** Calls of later phases are named after their phase. */
const phaseOf = (id: string) => Number(/-p(\d+)$/.exec(id)?.[1] ?? 1);

/** Whether a process died that had made a call of a phase, and had not stored the end of the phase before. */
function isPhaseLost({ ledger: { works }, history: { left } }: Lived): boolean {
  return works.some(({ life, id }) => {
    const record = left[life];
    return record !== undefined && !/turn \d+$/.test(id) && phaseOf(id) - 1 > record.completedPhases.length;
  });
}

test(
  `pipelines of at least ${STORIES} plans keep every promise while the store fails around the end of a phase, and the process dies (seed ${seed}) (edges 23, recovery 5, 7)`,
  async () => {
    const met: Fired = {};
    const property = fc.asyncProperty(pipelines, async (story) => {
      const simulation = new Simulation(story);
      for (const each of story.misfortunes) {
        const fired: Fired = {};
        // A copy: no process asks again for a run that has ended, which begins one again that did nothing.
        const lived = await simulation.suffer({ ...each }, fired);

        expect(lived.complaints).toEqual([]);
        for (const kind of Object.keys(fired)) fire(met, kind);
        if (isPhaseLost(lived)) fire(met, 'a phase was late when its process died');
      }
    });
    const kinds = [
      'phase end',
      'shutdown',
      'crash during model',
      'crash before tool',
      'a phase was late when its process died',
    ];
    const isMissing = () => kinds.some((kind) => !met[kind]);
    for (let round = 0; round === 0 || (isMissing() && round < MOST_ROUNDS); round++)
      await fc.assert(property, { numRuns: STORIES, seed: seed + round });
    console.log(`seed ${seed}: ${JSON.stringify(met)}`);
    for (const kind of kinds) expect(met[kind] ?? 0, kind).toBeGreaterThan(0);
  },
  torture > 1 ? 3_600_000 : 180_000,
);
