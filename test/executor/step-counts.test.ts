import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countSteps } from '../fixtures/step-counts.ts';

/*
 * What one step of a run does, as counts: they are the same on each machine, and what a step costs is made of them. A change
 * that raises one makes each step of each run dearer; a change that lowers one should lower it here as well. Each value is
 * the average of 20 steps with one call of one tool.
 */

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-step-counts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function countsOf(effect: 'read' | 'once', store: 'none' | 'memory' | 'sqlite') {
  const { counts, result } = await countSteps({ effect, store, folder });
  expect(result.status).toBe('ok');
  return counts;
}

/** The actors of a step: its model call, and its tool call, whose place is free again for the next one. */
const actors = { model: 1, 'tool.0': 1 };

/** Each actor begins (`xstate.init`), sends itself its result (`task.done`), and reports it to the run. */
const eventsOfActors = {
  'xstate.init': 2,
  'task.done': 2,
  'xstate.done.actor.model': 1,
  'xstate.done.actor.tool.0': 1,
};

/** The signal that a model call gives to its provider, and its listener on the signal of the run. */
const ofModelCall = { AbortController: 1, 'abort listener': 1 };

/** The 60 s are those of `firstChunkMs` and `chunkGapMs`: a tool without a time limit has no timer. */
const timerOfModelCall = { 'timer of 60000 ms': 1 };

describe('one step of a run', () => {
  test('without a store has four transitions, two actors, one timer and one abort listener', async () => {
    expect(await countsOf('read', 'none')).toEqual({
      events: eventsOfActors,
      microsteps: {
        // The reply: to `landing`, and without an unsaved step at once to `calling-tools`.
        'xstate.done.actor.model': 2,
        // The last result: to `entering`, and at once to `calling-model`.
        'xstate.done.actor.tool.0': 2,
      },
      actors,
      statements: {},
      timers: { ...ofModelCall, ...timerOfModelCall },
    });
  });

  test.for([
    // The save is there before the reply: one transition of its own, that ends where it began.
    ['memory', { 'boundary.persisted': 1, 'xstate.done.actor.model': 2, 'xstate.done.actor.tool.0': 2 }, {}],
    // The reply of a model that does not wait is earlier: the save takes the run from `landing` to `calling-tools`.
    ['sqlite', { 'boundary.persisted': 1, 'xstate.done.actor.model': 1, 'xstate.done.actor.tool.0': 2 }, ofCommits(1)],
  ] as const)(
    'that calls a tool without effects is saved once, with one more event and one more timer, in %s',
    async ([store, microsteps, statements]) => {
      expect(await countsOf('read', store)).toEqual({
        events: { ...eventsOfActors, 'boundary.persisted': 1 },
        microsteps,
        actors,
        statements,
        // A write of the store has 30 s.
        timers: { ...ofModelCall, ...timerOfModelCall, 'timer of 30000 ms': 1 },
      });
    },
  );

  test('that calls a tool with an effect is saved twice, with one more event and one more timer for the intent', async () => {
    expect(await countsOf('once', 'sqlite')).toEqual({
      events: { ...eventsOfActors, 'boundary.persisted': 2 },
      microsteps: { 'boundary.persisted': 2, 'xstate.done.actor.model': 1, 'xstate.done.actor.tool.0': 2 },
      actors,
      statements: ofCommits(2),
      timers: { ...ofModelCall, ...timerOfModelCall, 'timer of 30000 ms': 2 },
    });
  });
});

/** The statements of so many commits that add one step: the intent of a call is part of the head alone. */
function ofCommits(count: number) {
  return {
    'BEGIN IMMEDIATE': count,
    // Whether another process has written: otherwise what this one knows of its runs holds, and the file says that it is in use.
    'PRAGMA data_version': count,
    'UPDATE heads SET generation': count,
    'INSERT INTO messages': 1,
    COMMIT: count,
  };
}
