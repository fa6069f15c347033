import assert from 'node:assert/strict';
import type { JournalEntry } from '../../run/journal/entry.ts';
import type { ChangeStore } from '../../store/port.ts';
import { type Draft, journalStore, markingStore } from './case.ts';
import { sampleRecord } from './records.ts';

/** A store may need a moment after a write until its marks are equal again, ms. */
const SETTLES_MS = 5_000;

/** The mark of a store at rest. */
async function settledMark(store: ChangeStore): Promise<string> {
  for (const latest = performance.now() + SETTLES_MS; ; ) {
    const mark = await store.changeMark();
    await new Promise((resolve) => setTimeout(resolve, 10));
    if ((await store.changeMark()) === mark) return mark;
    assert(performance.now() < latest, 'the marks of a store at rest differ');
  }
}

/** The cases of the store contract about what a reader that asks often need not read: what has not changed, and what is old. */
export const changeCases: readonly Draft[] = [
  markingStore(
    'two marks are equal if nothing was written between them: reads change none (studio 18)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      // In a database that others use too, or that tidies itself up, each of their transactions may change the mark.
      for (const latest = performance.now() + SETTLES_MS; ; ) {
        const before = await settledMark(store);
        await store.load('run');
        await store.listInterrupted();
        if ((await store.changeMark()) === before) return;
        assert(performance.now() < latest, 'reads change the mark');
      }
    },
  ),

  markingStore('each write to a run changes the mark (studio 18)', async ({ store }) => {
    await settledMark(store);
    const seen = new Set<string>();
    const isNews = async (what: string, write: Promise<unknown>) => {
      await write;
      const mark = await settledMark(store);
      assert(!seen.has(mark), `${what} left the mark as it was`);
      seen.add(mark);
    };
    seen.add(await settledMark(store));
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
      const before = await settledMark(other);
      await store.delete('run');
      assert.notEqual(await other.changeMark(), before);
    },
    'reopen',
  ),

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
      for (let place = 1; place <= 30; place++) await store.publish('run', [parked(place)], { claim });
      for (const newest of [1, 7, 30, 31]) {
        const page = await store.readEvents('run', { newest, limit: 100 });
        const places = page?.entries.map(({ place }) => place) ?? [];
        const from = places[0] ?? 0;
        assert(from >= 1 && from <= Math.max(1, 31 - newest), `the newest ${newest} of 30 writes begin with ${from}`);
        assert.deepEqual(
          places,
          Array.from({ length: 31 - from }, (_, at) => from + at),
        );
      }
      const later = await store.readEvents('run', { newest: 7, after: 28, limit: 100 });
      assert.deepEqual(
        later?.entries.map(({ place }) => place),
        [29, 30],
      );
      assert.equal(await store.readEvents('unknown', { newest: 7, limit: 100 }), null);
    },
  ),
];
