import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { FleetWorld, type PlannedFleet, type PlannedProcess } from './fleet-world.ts';

const WORLDS = torture > 1 ? 60 : 1;
const MOST_PROCESSES = torture > 1 ? 64 : 12;

const during = { min: 0, max: 120_000 };
const processes: fc.Arbitrary<PlannedProcess> = fc.record({
  skewMs: fc.integer({ min: -60_000, max: 60_000 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  diesAt: fc.option(fc.integer(during), { nil: undefined }),
  partition: fc.option(fc.record({ from: fc.integer(during), ms: fc.integer({ min: 1_000, max: 90_000 }) }), {
    nil: undefined,
  }),
  upgradedAt: fc.option(fc.integer(during), { nil: undefined }),
});

const worlds: fc.Arbitrary<PlannedFleet> = fc.record({
  // One of them may not die, or nobody works.
  processes: fc.array(processes, { minLength: 8, maxLength: MOST_PROCESSES }),
  runs: fc.array(
    fc.record({
      at: fc.integer({ min: 0, max: 60_000 }),
      steps: fc.integer({ min: 1, max: 6 }),
      callMs: fc.integer({ min: 10, max: 12_000 }),
      tenant: fc.constantFrom('a', 'b', 'c'),
      isPlanned: fc.boolean(),
    }),
    { minLength: 10, maxLength: 40 },
  ),
  budgetMs: fc.integer({ min: 1_000, max: 60_000 }),
});

test(
  `each run of a fleet ends once, with one outcome, under all faults of processes: kills, cut networks, wrong clocks, deployments with other phases, forth and back (seed ${seed}) (engine 16, 18, 19, 20, 36, 45)`,
  async () => {
    const sum = { worlds: 0, kills: 0, partitions: 0, upgrades: 0, parked: 0, taken: 0 };
    await fc.assert(
      fc.asyncProperty(worlds, async (plan) => {
        const world = new FleetWorld(plan);
        expect(await world.live(), 'runs that have not ended').toEqual([]);
        const { notes } = world;
        for (const [call, times] of notes.begun) expect(times, `once call ${call}`).toBe(1);
        for (const [runId, ids] of notes.outcomes) expect(ids.size, `outcomes of ${runId}`).toBe(1);
        for (const [runId, versions] of notes.deployments)
          expect(versions, `deployments of ${runId}`).toEqual(versions.toSorted((a, b) => a - b));
        for (const [runId, times] of notes.parked) expect(times, `how often ${runId} parked it`).toBe(1);
        sum.worlds += 1;
        sum.kills += notes.kills;
        sum.partitions += notes.partitions;
        sum.upgrades += notes.upgrades;
        sum.parked += notes.parked.size;
        sum.taken += notes.taken;
      }),
      { seed, numRuns: WORLDS, endOnFailure: torture === 1 },
    );
    console.log(`seed ${seed}: ${JSON.stringify(sum)}`);
    expect(Math.min(sum.kills, sum.partitions, sum.upgrades, sum.parked)).toBeGreaterThan(0);
  },
  torture > 1 ? 3_600_000 : 120_000,
);
