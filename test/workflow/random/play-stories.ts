import fc from 'fast-check';
import type { CheckpointStore } from 'pawl';
import { expect } from 'vitest';
import { seed } from '../../crash/random.ts';
import type { LeapingClock } from './durable.ts';
import { playStory, stories } from './stories.ts';

/** How often something was met. */
export type Met = { [what: string]: number };

/** Where a machine runs: a store, and the clock that it shares with its processes. */
export interface Place {
  readonly store: CheckpointStore;
  readonly clock: LeapingClock;
}

/**
 * Plays random machines on a store, with kills between writes, and compares each with the uninterrupted actor of XState.
 * @param open opens a place for one machine
 * @returns what was met: a kind of thing that never was proves nothing
 */
export async function playStories(count: number, open: () => Place): Promise<Met> {
  const met: Met = {};
  const add = (what: string, n = 1) => {
    met[what] = (met[what] ?? 0) + n;
  };
  let nth = 0;
  const property = fc.asyncProperty(stories, async (story) => {
    const { complaints, excepted, status, ...counts } = await playStory(story, { ...open(), runId: `run-${nth++}` });
    add('machines');
    add(status);
    if (excepted) add('excepted');
    for (const [what, n] of Object.entries(counts)) add(what, n);
    expect(complaints).toEqual([]);
  });
  await fc.assert(property, { numRuns: count, seed });
  return met;
}
