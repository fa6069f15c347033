import { expect, test } from 'vitest';
import type { PlannedPhase } from './pipeline-plans.ts';
import { Simulation } from './simulation.ts';
import type { Misfortune, Story } from './simulation-plans.ts';

/** A small agent: in its loop, or in each of its phases, it makes these calls at once and then answers. */
function storyOf(tools: readonly ('look' | 'send')[], phases: number): Omit<Story, 'misfortunes'> {
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
