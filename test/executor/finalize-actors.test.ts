import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { checkEnd, type StopStory, stopKinds, type Told } from './stopped-runs.ts';

/** Runs that nothing stops: what they do decides at which moments they can be stopped. */
const wholes: readonly Omit<StopStory, 'moment' | 'stops'>[] = [
  { steps: 0, isOnce: false, isModelDown: false },
  { steps: 1, isOnce: false, isModelDown: true },
  { steps: 2, isOnce: false, isModelDown: false },
  { steps: 2, isOnce: true, isModelDown: false },
];

/** Of the pairs of ways in `npm test`. */
const STRIDE = torture > 1 ? 1 : 4;

const titled = wholes.map((whole) => {
  const { steps, isOnce, isModelDown } = whole;
  const calls = isOnce ? 'once' : 'read';
  return [
    `of ${steps} steps with ${calls} calls, ${isModelDown ? 'then a model error' : 'then an answer'},`,
    whole,
  ] as const;
});

/** Plays a run, stopped in each of these ways at each of its moments; with a stride at each in one of so many ways. */
async function stoppedEverywhere(
  whole: (typeof wholes)[number],
  ways: readonly StopStory['stops'][],
  stride = 1,
): Promise<Told[]> {
  const { moments } = await checkEnd({ ...whole, moment: 0, stops: [] });
  const told: Told[] = [];
  for (let moment = 0; moment < moments; moment++) {
    const some = ways.filter((_, way) => (way + moment) % stride === 0);
    for (const stops of some) told.push(await checkEnd({ ...whole, moment, stops }));
  }
  return told;
}

describe('a real run', () => {
  test.for(titled)(
    '%s stopped in each way at each moment, ends once, as the matrix says (finalize 2, 8)',
    async ([, whole]) => {
      const told = await stoppedEverywhere(
        whole,
        stopKinds.map((kind) => [kind]),
        torture > 1 || whole.isOnce || whole.steps < 2 ? 1 : 3,
      );
      const own = whole.isModelDown ? 'error' : 'ok';
      const seen = new Set(told.map(({ status }) => status));
      expect([...seen].sort()).toEqual(['cancelled', 'interrupted', 'killed', own, 'timeout'].sort());
      expect(told.filter(({ isResumed }) => isResumed).length).toBeGreaterThan(told.length / 5);
    },
  );

  test('stopped in two ways at one moment ends by the first, for each pair of them at each moment (finalize 2)', async () => {
    const kinds = ['signal: shutdown', 'signal: a kill', 'cancel', 'executor shutdown', 'deadline'] as const;
    const pairs = kinds.flatMap((one) => kinds.filter((other) => other !== one).map((other) => [one, other]));
    const told = await stoppedEverywhere({ steps: 1, isOnce: true, isModelDown: false }, pairs, STRIDE);
    expect(told.length).toBeGreaterThan((pairs.length * 5) / STRIDE);
  });
});
