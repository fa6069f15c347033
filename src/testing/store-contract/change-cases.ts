import assert from 'node:assert/strict';
import type { JournalEntry } from '../../run/journal/entry.ts';
import type { Wait } from '../../run/waits/wait.ts';
import type { RestingStore } from '../../store/due-port.ts';
import type { ChangeStore } from '../../store/port.ts';
import { type Draft, dueStore, journalStore, markingStore } from './case.ts';
import { LONG_MS, ownRun, sampleRecord } from './records.ts';

/** A store may need a moment after a write until its marks are equal again, ms. */
const SETTLES_MS = 5_000;

/** The mark of a store at rest. */
async function readMark(store: ChangeStore): Promise<string> {
  for (const latest = performance.now() + SETTLES_MS; ; ) {
    const mark = await store.changeMark();
    await new Promise((resolve) => setTimeout(resolve, 10));
    if ((await store.changeMark()) === mark) return mark;
    assert(performance.now() < latest, 'the marks of a store at rest differ');
  }
}

type Kind = 'timer' | 'event';
const waitsFor = (kind: Kind) => {
  const wait: Wait = { id: 'w', kind, createdAt: 1, step: 1, name: 'payment', key: '7' };
  return { waits: [wait], settled: [] };
};

async function resting(store: RestingStore, runId: string, kind: Kind): Promise<void> {
  const claim = await ownRun(store, runId, { updatedAt: Date.now(), waiting: waitsFor(kind) });
  assert.equal(await store.due.leave(claim, { readUpTo: 0 }), true);
}

const countsOf = async (store: RestingStore) => {
  const { now: _, dueSince: __, ...counts } = await store.due.countRuns();
  return counts;
};

/** Cases of a store that counts its runs. */
export const countCases: readonly Draft[] = [
  dueStore(
    'runs are counted: live, due, parked, and waiting by the kind of their first wait (otel 15, 21)',
    async ({ store }) => {
      assert.deepEqual(await countsOf(store), { live: 0, due: 0, waiting: {}, parked: 0 });
      await ownRun(store, 'live', { updatedAt: Date.now() });
      await store.save(sampleRecord('due'));
      await resting(store, 'asks', 'event');
      await resting(store, 'asks too', 'event');
      await resting(store, 'sleeps', 'timer');
      await store.save(sampleRecord('parked', { parked: { code: 'PARKED', reason: 'not today' } }));
      assert.deepEqual(await countsOf(store), { live: 1, due: 1, waiting: { event: 2, timer: 1 }, parked: 1 });
      await store.commands.send('asks', { id: 'c', kind: 'steer', text: 'wake up' });
      assert.deepEqual(await countsOf(store), { live: 1, due: 2, waiting: { event: 1, timer: 1 }, parked: 1 });
      await store.save(sampleRecord('parked'));
      assert.deepEqual(await countsOf(store), { live: 1, due: 3, waiting: { event: 1, timer: 1 }, parked: 0 });
    },
  ),

  dueStore('a run that is deleted, or was only claimed, is in no count (otel 15)', async ({ store }) => {
    await store.claim('only claimed', 'me', LONG_MS);
    const claim = await ownRun(store, 'gone', { updatedAt: Date.now() });
    await store.delete('gone', { claim });
    assert.deepEqual(await countsOf(store), { live: 0, due: 0, waiting: {}, parked: 0 });
  }),

  dueStore(
    'the oldest due run is due since its last record, its time, or the command that woke it (otel 15)',
    async ({ store }) => {
      const { now, dueSince } = await store.due.countRuns();
      assert.equal(dueSince, undefined);
      await resting(store, 'woken', 'event');
      await store.commands.send('woken', { id: 'c', kind: 'steer', text: 'wake up' });
      const { dueSince: woken = 0 } = await store.due.countRuns();
      assert(woken >= now - 1_000, `due since ${now - woken} ms before the first look`);
      const claim = await ownRun(store, 'overdue', { updatedAt: 1, waiting: waitsFor('timer') });
      const dueAt = Math.floor(now) - 50_000;
      await store.due.leave(claim, { dueAt, readUpTo: 0 });
      assert.equal((await store.due.countRuns()).dueSince, dueAt);
      const released = await ownRun(store, 'released', { updatedAt: Math.floor(now) - 60_000 });
      await store.release(released);
      assert.equal((await store.due.countRuns()).dueSince, Math.floor(now) - 60_000);
    },
  ),

  dueStore(
    'another process counts the same (otel 15)',
    async ({ store, reopen }) => {
      await ownRun(store, 'live', { updatedAt: Date.now() });
      await resting(store, 'asks', 'event');
      assert.deepEqual(await countsOf(await reopen()), { live: 1, due: 0, waiting: { event: 1 }, parked: 0 });
    },
    'reopen',
  ),
];

/** The cases of the store contract about what a reader that asks often need not read: what has not changed, and what is old. */
export const changeCases: readonly Draft[] = [
  markingStore(
    'two marks are equal if nothing was written between them: reads change none (studio 18)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      // In a database that others use too, or that tidies itself up, each of their transactions may change the mark.
      for (const latest = performance.now() + SETTLES_MS; ; ) {
        const before = await readMark(store);
        await store.load('run');
        await store.listInterrupted();
        if ((await store.changeMark()) === before) return;
        assert(performance.now() < latest, 'reads change the mark');
      }
    },
  ),

  markingStore('each write to a run changes the mark (studio 18)', async ({ store }) => {
    await readMark(store);
    const seen = new Set<string>();
    const isNews = async (what: string, write: Promise<unknown>) => {
      await write;
      const mark = await readMark(store);
      assert(!seen.has(mark), `${what} left the mark as it was`);
      seen.add(mark);
    };
    seen.add(await readMark(store));
    const claiming = store.claim('run', 'one', 600_000);
    await isNews('claim', claiming);
    const claim = await claiming;
    assert(claim);
    await isNews('save', store.save(sampleRecord('run'), { claim }));
    await isNews('renew', store.renew(claim, 900_000));
    await isNews('release', store.release(claim));
    await isNews('delete', store.delete('run'));
  }),

  markingStore(
    'a mark changes by the writes of other processes (studio 18)',
    async ({ store, reopen }) => {
      await store.save(sampleRecord('run'));
      const other = await reopen();
      const before = await readMark(other);
      await store.delete('run');
      assert.notEqual(await other.changeMark(), before);
    },
    'reopen',
  ),

  ...countCases,

  journalStore(
    'a page that begins with the newest writes has all that come after its first entry (studio 33)',
    async ({ store }) => {
      const claim = await store.claim('run', 'me', 600_000);
      assert(claim);
      await store.save(sampleRecord('run'), { claim });
      const parked = (place: number): JournalEntry => ({
        ...{ place, keep: 'kept' },
        event: { type: 'run.parked', code: 'C', reason: '', runId: 'run', seq: place, at: 7 },
      });
      for (let place = 1; place <= 30; place++) await store.journal.publish('run', [parked(place)], { claim });
      for (const newest of [1, 7, 30, 31]) {
        const page = await store.journal.read('run', { newest, limit: 100 });
        const places = page?.entries.map(({ place }) => place) ?? [];
        const from = places[0] ?? 0;
        assert(from >= 1 && from <= Math.max(1, 31 - newest), `the newest ${newest} of 30 writes begin with ${from}`);
        assert.deepEqual(
          places,
          Array.from({ length: 31 - from }, (_, at) => from + at),
        );
      }
      const later = await store.journal.read('run', { newest: 7, after: 28, limit: 100 });
      assert.deepEqual(
        later?.entries.map(({ place }) => place),
        [29, 30],
      );
      assert.equal(await store.journal.read('unknown', { newest: 7, limit: 100 }), null);
    },
  ),
];
