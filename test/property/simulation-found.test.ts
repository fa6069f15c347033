import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import type { PlannedPhase } from './pipeline-plans.ts';
import { type Between, Simulation } from './simulation.ts';
import type { Misfortune, Story } from './simulation-plans.ts';
import { forgetful, type Recording, trusting } from './simulation-throttle.ts';

/** A small agent: in its loop, or in each of its phases, it makes these calls at once and then answers. */
function storyOf(tools: readonly ('look' | 'send' | 'pay')[], phases: number): Omit<Story, 'misfortunes'> {
  const phase: PlannedPhase = {
    ...{ name: 'x', optional: false, fallback: '', bare: false, recovery: 'step', end: 'answer' },
    ...{ maxSteps: undefined, tools: undefined, steps: [tools.map((tool) => ({ tool, isSame: true }))] },
  };
  return {
    plan: { phases: Array.from({ length: phases }, () => phase), latency: [0] },
    ...{ isPipeline: phases > 1, isPlain: false, pace: [0], throttleMs: 0, family: undefined },
  };
}

/** Answers, and calls nothing. */
const answering: PlannedPhase = {
  ...{ name: 'x', optional: false, fallback: '', bare: true, recovery: 'step', end: 'answer' },
  ...{ maxSteps: undefined, tools: undefined, steps: [] },
};

/** Looks once, and then answers, if it may. */
const looking: PlannedPhase = { ...answering, bare: false, steps: [[{ tool: 'look', isSame: true }]] };
const brief: PlannedPhase = { ...looking, maxSteps: 1 };

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
  'the retry of an older save never lands after the one that leaves the run (checkpoint 19, promise b)': {
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
  'what goes on from a save that nobody answers is compared with all of it (promise b)': {
    ...{ plan: { phases: [answering], latency: [0] }, isPipeline: false, isPlain: false, pace: [0], throttleMs: 0 },
    family: {
      helpers: [answering, answering],
      asks: [{ phase: 0, step: 0, helper: 0, isSame: true }],
      isNested: false,
    },
    misfortunes: [
      {
        stops: [{ at: 19, how: 'crash' }],
        faults: [
          { call: 26, kind: 'unanswered' },
          { call: 17, kind: 'late' },
          { call: 6, kind: 'late' },
          { call: 22, kind: 'unclear' },
        ],
        ...{ outage: undefined, latency: [0], jumps: [] },
      },
    ],
  },
  'what a pipeline hands over in whole records counts as said once (promise g)': {
    ...{ plan: { phases: [answering, brief, looking, answering], latency: [0] }, isPipeline: true, isPlain: false },
    ...{ pace: [0], throttleMs: 0, family: undefined },
    misfortunes: [{ stops: [{ at: 23, how: 'shutdown' }], faults: [], outage: undefined, latency: [0], jumps: [] }],
  },
};

test.each(Object.entries(found))('%s', async (_, story) => {
  const [misfortune] = story.misfortunes as [Misfortune];
  expect((await new Simulation(story).suffer(misfortune, {})).complaints).toEqual([]);
});

const quiet: Misfortune = { stops: [], faults: [], outage: undefined, latency: [0], jumps: [] };

interface Host {
  readonly recording?: Recording;
  readonly between?: Between;
  /** Nothing more is played when this promise is broken. */
  readonly until?: string;
}

/** What the simulator has to say, over all these misfortunes, of a host of that kind. */
async function complaintsOf(
  story: Omit<Story, 'misfortunes'>,
  misfortunes: readonly Misfortune[],
  { recording, between, until }: Host = {},
): Promise<string[]> {
  const simulation = new Simulation({ ...story, misfortunes }, between, recording);
  const promises = new Set<string>();
  // Of the same faults, a process that outlived one boundary outlives all later ones: their histories would be the same one.
  const uncut = new Set<Misfortune['faults']>();
  for (const misfortune of misfortunes) {
    if (until !== undefined && promises.has(until)) break;
    if (uncut.has(misfortune.faults)) continue;
    const { complaints, history } = await simulation.suffer(misfortune, {});
    for (const { promise } of complaints) promises.add(promise);
    if (history.crashes.length === 0) uncut.add(misfortune.faults);
  }
  return [...promises].sort();
}

/** One history for each boundary at which a process may die; in `npm test` for some of them. */
function crashes(boundaries: number, rest: Partial<Misfortune> = {}, stride = torture > 1 ? 1 : 2): Misfortune[] {
  const all = Array.from({ length: boundaries }, (_, at) => ({
    ...quiet,
    ...rest,
    stops: [{ at, how: 'crash' } as const],
  }));
  return all.filter((_, at) => at % stride === 0);
}

describe('a burst of quick steps, then a long tool, and a crash at each boundary', () => {
  const [phase] = storyOf(['look'], 1).plan.phases as [PlannedPhase];
  const steps = Array.from({ length: 4 }, () => [{ tool: 'look' as const, isSame: false }]);
  const story: Omit<Story, 'misfortunes'> = {
    ...storyOf(['look'], 1),
    plan: { phases: [{ ...phase, steps }], latency: [0] },
    ...{ pace: [0, 0, 5_000], throttleMs: 300 },
  };

  test('what the throttle put off is written when its window ends (checkpoint 18)', async () => {
    expect(await complaintsOf(story, crashes(30))).toEqual([]);
  });

  test('a throttle that never writes what it put off is noticed (promise f)', async () => {
    expect(await complaintsOf(story, crashes(30), { recording: forgetful })).toEqual(['f']);
  });
});

describe('a store that never answers one call, and a crash at each boundary after that', () => {
  const story = { ...storyOf(['pay'], 1), throttleMs: 1 };
  const misfortunes = [4, 5, 6, 7, 8].flatMap((call) => crashes(16, { faults: [{ call, kind: 'lost' }] }));

  test('a save that was not answered in time has not landed: no call with effects begins on it (recovery 7)', async () => {
    expect(await complaintsOf(story, misfortunes)).toEqual([]);
  });

  test('one that counts as landed is noticed (promise c)', async () => {
    expect(await complaintsOf(story, misfortunes, { recording: trusting, until: 'c' })).toContain('c');
  });
});

describe('an agent that puts another to work, which puts a third to work, and a crash at each boundary', () => {
  const [phase] = storyOf(['look', 'send', 'pay'], 1).plan.phases as [PlannedPhase];
  const asks = [{ phase: 0, step: 0, helper: 0, isSame: false }];
  const story = { ...storyOf(['send'], 1), family: { helpers: [phase, phase], asks, isNested: true } };

  test('a child that ended is not run again, and one that was interrupted continues (supervision 7)', async () => {
    expect(await complaintsOf(story, crashes(80, {}, torture > 1 ? 1 : 5))).toEqual([]);
  });

  test('a store that forgets what children came to is noticed: they are run again (promise e)', async () => {
    const between: Between = async (storage) => ({
      ...storage,
      ...(storage.outcomes ? { outcomes: { ...storage.outcomes, find: async () => null } } : {}),
    });
    expect(await complaintsOf(story, crashes(80), { between, until: 'e' })).toContain('e');
  });
});
