import assert from 'node:assert/strict';
import type { InterruptedRun } from '../../record/interrupted.ts';
import type { CheckpointStore, Cursor } from '../../store/port.ts';
import { type Draft, everyStore, refuses } from './case.ts';
import { type Random, seededRandom } from './random.ts';
import { keeps } from './record-cases.ts';
import { fullRecord, sampleOutcome, sampleRecord, userMessage } from './records.ts';

/** The cases of the store contract about saving, deleting and listing. */
export const storeCases: readonly Draft[] = [
  everyStore('save replaces the earlier record, the last one wins (checkpoint 7)', async ({ store }) => {
    await store.save(fullRecord('run'));
    await keeps(store, sampleRecord('run', { messages: [userMessage('shorter')], updatedAt: 1 }));
    await keeps(store, sampleRecord('run', { messages: [1, 2, 3].map((n) => userMessage(`${n}`)) }));
  }),

  everyStore('saves of one run that are asked for at once land in that order (checkpoint 7)', async ({ store }) => {
    const records = Array.from({ length: 20 }, (_, i) => sampleRecord('run', { iteration: i, revision: i + 1 }));
    await Promise.all(records.map((record) => store.save(record)));
    assert.equal((await store.load('run'))?.iteration, 19);
  }),

  everyStore('saves of many runs at once all land (checkpoint 7)', async ({ store }) => {
    const records = Array.from({ length: 50 }, (_, i) => sampleRecord(`run-${i}`, { iteration: i }));
    await Promise.all(records.map((record) => store.save(record)));
    for (const record of records) assert.deepEqual(await store.load(record.meta.runId), record);
    assert.equal((await store.listInterrupted()).length, 50);
  }),

  everyStore('load of a run that is not there gives null (checkpoint 7)', async ({ store }) => {
    assert.equal(await store.load('nobody'), null);
    await store.save(sampleRecord('run'));
    assert.equal(await store.load('nobody'), null);
  }),

  everyStore('a deleted run is gone, and deleting one that is not there is fine (checkpoint 7)', async ({ store }) => {
    await store.delete('nobody');
    for (const runId of ['a', 'b']) await store.save(sampleRecord(runId));
    await store.delete('a');
    await store.delete('a');
    assert.equal(await store.load('a'), null);
    assert.deepEqual(
      (await store.listInterrupted()).map((run) => run.runId),
      ['b'],
    );
    await keeps(store, sampleRecord('a', { messages: [] }));
  }),

  everyStore('a list is ordered by updatedAt, then by id (checkpoint 7)', async ({ store }) => {
    const times: readonly (readonly [string, number])[] = [
      ['d', 20],
      ['b', 10],
      ['c', 10],
      ['a', 30],
      ['e', 9.5],
    ];
    for (const [runId, updatedAt] of times) await store.save(sampleRecord(runId, { updatedAt }));
    assert.deepEqual(
      (await store.listInterrupted()).map((run) => run.runId),
      ['e', 'b', 'c', 'd', 'a'],
    );
  }),

  everyStore('a list says what a run is, without its transcript (checkpoint 7)', async ({ store }) => {
    const phases = [{ name: 'draft', output: 'a secret line' }];
    const { parked: _, ...record } = fullRecord('run');
    await store.save({ ...record, completedPhases: phases, messages: [userMessage('a secret line')] });
    const [listed] = await store.listInterrupted();
    assert(listed && listed.status !== 'quarantined');
    assert(listed.status === undefined || listed.status === 'interrupted');
    const { meta, iteration, completedPhases, updatedAt } = listed;
    assert.deepEqual(meta, record.meta);
    assert.deepEqual({ iteration, completedPhases }, { iteration: 2, completedPhases: ['draft'] });
    assert.equal(updatedAt, record.updatedAt);
    assert(listed.attempts === undefined || listed.attempts === 2);
    assert(!JSON.stringify(listed).includes('secret'));
  }),

  everyStore('a run that a call of another began is listed with that call (supervision 7)', async ({ store }) => {
    const parent = { runId: 'parent-1', callId: 'call-1', rootRunId: 'root-1' };
    await store.save(sampleRecord('~child', { fingerprint: 'f', parent }));
    const [listed] = await store.listInterrupted();
    // If the list does not say, the record is read.
    if (listed && 'parent' in listed) assert.deepEqual(listed.parent, parent);
    assert.deepEqual((await store.load('~child'))?.parent, parent);
  }),

  everyStore('a parked run is listed with its reason (checkpoint 7)', async ({ store }) => {
    const reason = 'three starts without progress';
    await store.save(sampleRecord('run', { parked: { code: 'RUN_PARKED', reason } }));
    const [listed] = await store.listInterrupted();
    if (listed?.status !== undefined) assert.deepEqual([listed.status, listed.reason], ['parked', reason]);
  }),

  everyStore('pages of a list together show each run once (checkpoint 7)', async ({ store }) => {
    const ids = await saveMany(store, 25);
    for (const limit of [1, 4, 25, 100]) assert.deepEqual(await idsInPages(store, limit), ids, `pages of ${limit}`);
  }),

  everyStore(
    'pages of a list continue after quarantined runs (checkpoint 7)',
    async ({ store, damage }) => {
      const ids = await saveMany(store, 12);
      for (const i of [0, 3, 4, 5, 6, 11]) await damage(ids[i] as string, i % 2 ? 'corrupt' : 'newer');
      for (const limit of [1, 3]) assert.deepEqual((await idsInPages(store, limit)).sort(), [...ids].sort());
    },
    'damage',
  ),

  everyStore('a run is listed iff it was saved and not deleted since (checkpoint 8)', async ({ store, seed }) => {
    const random = seededRandom(seed);
    const expected = new Map<string, number>();
    for (let i = 0; i < 150; i++) {
      await randomChange(store, random, expected);
      const listed = await store.listInterrupted();
      const found = new Map(listed.map((run) => [run.runId, run.status === 'quarantined' ? -1 : run.iteration]));
      assert.deepEqual(found, expected, `after change ${i} of seed ${seed}`);
    }
  }),

  everyStore(
    'a record that has its outcome is listed still: its delivery is left (checkpoint 8)',
    async ({ store }) => {
      await store.save(sampleRecord('run', { outcome: sampleOutcome('run') }));
      assert.equal((await store.listInterrupted()).length, 1);
    },
  ),

  everyStore('an aborted signal: each call is refused, and nothing is written (checkpoint 10)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const signal = AbortSignal.abort(Object.assign(new Error('stop'), { code: 'STOP' }));
    await refuses(store.save(sampleRecord('run', { iteration: 9 }), { signal }), 'STOP');
    await refuses(store.save(sampleRecord('other'), { signal }), 'STOP');
    await refuses(store.delete('run', { signal }), 'STOP');
    await refuses(store.load('run', { signal }), 'STOP');
    await refuses(store.listInterrupted({ signal }), 'STOP');
    assert.deepEqual(await store.load('run'), sampleRecord('run'));
    assert.equal(await store.load('other'), null);
  }),
];

async function saveMany(store: CheckpointStore, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `run-${String(i).padStart(3, '0')}`);
  for (const [i, runId] of ids.entries()) await store.save(sampleRecord(runId, { updatedAt: Math.floor(i / 3) }));
  return ids;
}

async function idsInPages(store: CheckpointStore, limit: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: Cursor | undefined, page: readonly InterruptedRun[] | undefined; page?.length !== 0; ) {
    page = await store.listInterrupted({ limit, ...(after ? { after } : {}) });
    assert(page.length <= limit, `a page of at most ${limit} has ${page.length} runs`);
    assert(ids.length <= 1_000, 'the pages of a list do not end');
    for (const run of page) ids.push(run.runId);
    const last = page.at(-1);
    if (last) after = { updatedAt: last.updatedAt ?? Number.NaN, runId: last.runId };
  }
  return ids;
}

/** Saves or deletes one of a few runs, and notes in `expected` which iteration a list must show. */
async function randomChange(store: CheckpointStore, random: Random, expected: Map<string, number>): Promise<void> {
  const runId = `run-${random.below(5)}`;
  if (random.below(3) === 0) {
    await store.delete(runId);
    expected.delete(runId);
  } else {
    const iteration = (expected.get(runId) ?? 0) + 1;
    await store.save(sampleRecord(runId, { iteration, updatedAt: random.below(100) }));
    expected.set(runId, iteration);
  }
}
