import fc from 'fast-check';
import type { RunCheckpoint } from 'pawl';
import { describe, expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { type NaiveStore, naiveStore } from '../fixtures/naive-store.ts';
import { type Between, type Lived, Simulation } from './simulation.ts';
import { isEndedLate, isFinishedLost } from './simulation-judge.ts';
import { type Story, stories } from './simulation-plans.ts';
import { type Fired, fire } from './simulation-store.ts';

/** Of each about four histories. More are drawn until every kind of misfortune has been met. */
const STORIES = torture > 1 ? 5_600 : 30;
const MOST_ROUNDS = 8;

/** Every kind of misfortune, and what a history may come to through it: one that was never met proves nothing. */
const kinds = [
  ...['latency', 'slow', 'refused', 'unclear', 'outage', 'shutdown', 'clock set back', 'clock set forward'],
  ...['lost', 'unanswered', 'late', 'hanging save', 'hanging append'],
  ...['put off', 'throttle', 'family', 'children left', 'child in several processes', 'nested child'],
  // So rare that a few hundred histories may do without.
  ...(torture > 1 ? ['put off and lost', 'hanging claim', 'hanging renew', 'hanging release', 'hanging delete'] : []),
  ...['before', 'after'].flatMap((when) =>
    ['store.save', 'store.append', 'store.claim', 'store.delete', 'tool', 'onOutcome'].map(
      (what) => `crash ${when} ${what}`,
    ),
  ),
  ...[
    'crash during model',
    'one crash',
    'several crashes',
    'unknown outcome',
    'single loop',
    'pipeline',
    'failed',
    'compared',
  ],
];

/** Where in its agent a run was when its process ended. */
function placeOf({ openPhase, outcome, completedPhases }: RunCheckpoint, { isPipeline, plan }: Story): string {
  if (outcome || !isPipeline) return outcome ? 'with its outcome' : 'in its loop';
  const isAnew = plan.phases[completedPhases.length]?.recovery === 'boundary';
  if (openPhase) return isAnew ? 'in a phase that would begin anew, and must not' : 'in a phase';
  return isAnew ? 'before a phase that begins anew' : 'between phases';
}

const isNested = (record: RunCheckpoint | undefined) =>
  record?.parent && record.parent.runId !== record.parent.rootRunId;

/** What a throttle and a family have come to. */
function noteKinds({ ledger }: Lived, { family, throttleMs }: Story, fired: Fired): void {
  if (throttleMs > 0) fire(fired, 'throttle');
  if (throttleMs > 0 && isFinishedLost(ledger)) fire(fired, 'put off and lost');
  if (!family) return;
  fire(fired, 'family');
  const works = ledger.works.filter(({ runId }) => runId !== ledger.runId);
  for (const each of Map.groupBy(works, ({ runId }) => runId).values()) {
    if (new Set(each.map(({ life }) => life)).size > 1) fire(fired, 'child in several processes');
    if (each.some(({ runId }) => isNested(ledger.lasts.get(runId)))) fire(fired, 'nested child');
  }
  if (ledger.childrenLeft > 0) fire(fired, 'children left');
  if (ledger.isParked) fire(fired, 'parked');
  for (const told of ledger.told.values()) if (isEndedLate(told)) fire(fired, 'child ended late');
}

/** Beyond the promises: records, budget and transcript end as if nothing had happened, but for what nobody knows. */
function compare({ ledger, books }: Lived, whole: Lived, fired: Fired): void {
  if (ledger.last?.outcome?.status !== 'ok') fire(fired, 'failed');
  if (ledger.unknown.size > 0 || ledger.isParked || !ledger.last?.outcome) return;
  fire(fired, 'compared');
  expect(books).toEqual(whole.books);
  for (const [runId, last] of ledger.lasts) {
    // The last save of a child may have had no answer: its parent has its outcome, and its record goes.
    const isWhole = last.outcome !== undefined && !isEndedLate(ledger.told.get(runId));
    if (isWhole) compareRecords(last, whole.ledger.lasts.get(runId));
  }
}

function compareRecords(last: RunCheckpoint, expected: RunCheckpoint | undefined): void {
  if (!expected) throw new Error(`run ${last.meta.runId} is none of the plan`);
  expect(last.counters).toEqual(expected.counters);
  expect(last.spend?.tokens).toBe(expected.spend?.tokens);
  // Of a phase that failed and would begin anew, the record of a resumed run holds the question, another one nothing.
  const isLeftOut = last.openPhase === undefined && last.messages.length <= 1 && expected.messages.length <= 1;
  if (!isLeftOut) expect(last.messages).toEqual(expected.messages);
  expect(last.completedPhases).toEqual(expected.completedPhases);
}

describe('a simulated world: store, clock, models and tools, and all their faults', () => {
  test(
    `each of the histories of at least ${STORIES} random agents keeps every promise (seed ${seed}) (recovery 5, 9, faults 29)`,
    async () => {
      const fired: Fired = {};
      let histories = 0;
      const property = fc.asyncProperty(stories, async (story) => {
        const simulation = new Simulation(story);
        for (const misfortune of story.misfortunes) {
          const lived = await simulation.suffer(misfortune, fired);
          const { complaints, history } = lived;
          histories += 1;
          expect(complaints).toEqual([]);
          compare(lived, await simulation.whole(), fired);
          noteKinds(lived, story, fired);
          for (const record of history.left) fire(fired, `left ${placeOf(record, story)}`);
          if (history.crashes.length > 0) fire(fired, history.crashes.length > 1 ? 'several crashes' : 'one crash');
          if (history.ledger.unknown.size > 0) fire(fired, 'unknown outcome');
          fire(fired, story.isPipeline ? 'pipeline' : 'single loop');
        }
      });
      const isMissing = () => kinds.some((kind) => !fired[kind]);
      for (let round = 0; round === 0 || (isMissing() && round < MOST_ROUNDS); round++) {
        await fc.assert(property, { numRuns: STORIES, seed: seed + round });
      }
      console.log(`seed ${seed}: ${histories} histories, ${JSON.stringify(fired)}`);
      for (const kind of kinds) expect(fired[kind] ?? 0, kind).toBeGreaterThan(0);
    },
    torture > 1 ? 3_600_000 : 180_000,
  );

  /** The promises that the same suite sees broken on a store that lies, up to the story that breaks this one. */
  async function brokenOn(between: Between, promise: string): Promise<Set<string>> {
    const broken = new Set<string>();
    const isKept = fc.asyncProperty(stories, async (story) => {
      if (broken.has(promise)) return;
      const simulation = new Simulation(story, between);
      for (const misfortune of story.misfortunes) {
        for (const { promise } of (await simulation.suffer(misfortune, {})).complaints) broken.add(promise);
      }
    });
    await fc.assert(isKept, { numRuns: 12, seed: 1 });
    return broken;
  }

  test('the same suite fails on the naive store, whichever way it lies', async () => {
    for (const [lie, promise] of [
      ['late', 'a'],
      ['unowned', 'd'],
      ['forgetful', 'c'],
    ] as const) {
      let last: NaiveStore | undefined;
      const between: Between = async (storage) => {
        if (lie === 'late') last?.crash();
        // The other lies are about what is written, not about when.
        while (last && last.pending > 0) await new Promise((resolve) => setTimeout(resolve, 1));
        last = naiveStore(storage, { lies: [lie], delayMs: lie === 'late' ? 60_000 : 0 });
        return last;
      };
      const broken = await brokenOn(between, promise);
      last?.crash();
      console.log(`${lie}: ${[...broken].join(' ')}`);
      expect([...broken], lie).toContain(promise);
    }
  });
});
