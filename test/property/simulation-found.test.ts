import { describe, expect, test } from 'vitest';
import type { PlannedPhase } from './pipeline-plans.ts';
import { Simulation } from './simulation.ts';
import type { Misfortune, Story } from './simulation-plans.ts';
import { forgetful, type Recording, throttled, trusting } from './simulation-throttle.ts';

/** A small agent: in its loop, or in each of its phases, it makes these calls at once and then answers. */
function storyOf(tools: readonly ('look' | 'send' | 'pay')[], phases: number): Omit<Story, 'misfortunes'> {
  const phase: PlannedPhase = {
    ...{ name: 'x', optional: false, fallback: '', bare: false, recovery: 'step', end: 'answer' },
    ...{ maxIterations: undefined, tools: undefined, steps: [tools.map((tool) => ({ tool, isSame: true }))] },
  };
  return {
    plan: { phases: Array.from({ length: phases }, () => phase), latency: [0] },
    ...{ isPipeline: phases > 1, isPlain: false, pace: [0], throttleMs: 0, family: undefined },
  };
}

/** Histories that the simulator found, and made small, when there was still something to find. */
const found: { readonly [title: string]: Story } = {
  'an outcome that cannot be stored is not delivered before it is (promise e)': {
    ...storyOf(['look'], 2),
    misfortunes: [
      {
        stops: [
          { at: 10, how: 'shutdown' },
          { at: 12, how: 'crash' },
          { at: 0, how: 'crash' },
        ],
        ...{ faults: [{ call: 15, kind: 'refused' }], outage: undefined, latency: [0], jumps: [] },
      },
    ],
  },
  'checkpoint 19: the retry of an older save never lands after the one that leaves the run (promise b)': {
    ...storyOf(['look', 'send'], 1),
    misfortunes: [
      {
        stops: [
          { at: 8, how: 'shutdown' },
          { at: 0, how: 'crash' },
        ],
        faults: [
          { call: 5, kind: 'refused' },
          { call: 6, kind: 'refused' },
          { call: 7, kind: 'slow' },
        ],
        ...{ outage: { call: 14, ms: 100 }, latency: [0], jumps: [] },
      },
    ],
  },
};

test.each(Object.entries(found))('%s', async (_, story) => {
  const [misfortune] = story.misfortunes as [Misfortune];
  expect((await new Simulation(story).suffer(misfortune, {})).complaints).toEqual([]);
});

const quiet: Misfortune = { stops: [], faults: [], outage: undefined, latency: [0], jumps: [] };

/** What the simulator has to say, over all these misfortunes, of a host that records its runs in this way. */
async function complaintsOf(
  story: Omit<Story, 'misfortunes'>,
  misfortunes: readonly Misfortune[],
  recording: Recording,
) {
  const simulation = new Simulation({ ...story, misfortunes }, undefined, recording);
  const promises = new Set<string>();
  for (const misfortune of misfortunes) {
    for (const { promise } of (await simulation.suffer(misfortune, {})).complaints) promises.add(promise);
  }
  return [...promises].sort();
}

describe('a burst of quick steps, then a long tool, and a crash at each boundary', () => {
  const [phase] = storyOf(['look'], 1).plan.phases as [PlannedPhase];
  const steps = Array.from({ length: 4 }, () => [{ tool: 'look' as const, isSame: false }]);
  const story: Omit<Story, 'misfortunes'> = {
    ...storyOf(['look'], 1),
    plan: { phases: [{ ...phase, steps }], latency: [0] },
    ...{ pace: [0, 0, 5_000], throttleMs: 300 },
  };
  const crashes = Array.from({ length: 30 }, (_, at): Misfortune => ({ ...quiet, stops: [{ at, how: 'crash' }] }));

  test('checkpoint 18: what the throttle put off is written when its window ends', async () => {
    expect(await complaintsOf(story, crashes, throttled)).toEqual([]);
  });

  test('a throttle that never writes what it put off is noticed (promise f)', async () => {
    expect(await complaintsOf(story, crashes, forgetful)).toEqual(['f']);
  });
});

describe('a store that never answers one call, and a crash at each boundary after that', () => {
  const story = { ...storyOf(['pay'], 1), throttleMs: 1 };
  const hangs = Array.from({ length: 5 }, (_, i) => ({ call: 4 + i, kind: 'lost' as const }));
  const misfortunes = hangs.flatMap((fault) =>
    Array.from({ length: 16 }, (_, at): Misfortune => ({ ...quiet, stops: [{ at, how: 'crash' }], faults: [fault] })),
  );

  test('a save that was not answered in time has not landed: no call with effects begins on it (recovery 7)', async () => {
    expect(await complaintsOf(story, misfortunes, throttled)).toEqual([]);
  });

  test('one that counts as landed is noticed (promise c)', async () => {
    expect(await complaintsOf(story, misfortunes, trusting)).toContain('c');
  });
});
