import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { copyOfPinned, pinnedVersions } from '../fixtures/pinned-stores.ts';
import { checkCost, checkLists, codec, type ListingStore, listed } from './caller-lists.ts';

const stores: readonly (readonly [string, () => ListingStore])[] = [
  ['in memory', () => memoryStore()],
  ['in SQLite', () => sqliteStore({ path: ':memory:' })],
  ['in encrypted SQLite', () => sqliteStore({ path: ':memory:', codec: codec() })],
];

describe.for(stores)('The list of a caller %s', ([, make]) => {
  test('has the runs of that caller alone, in pages: those that rest, and the others (web 19)', async () => {
    await checkLists(make());
  });
});

describe('The list of a caller', () => {
  test('has the runs of a file that an earlier version wrote, which say nothing of their callers (web 19)', async () => {
    for (const version of pinnedVersions) {
      const store = sqliteStore({ path: copyOfPinned('runs.db', version) });
      const all = await store.listInterrupted();
      const callers = [...new Set(all.flatMap((run) => (run.status === 'quarantined' ? [] : [run.meta.callerId])))];
      expect(callers).not.toEqual([]);
      for (const callerId of callers) {
        const own = all.filter((run) => run.status !== 'quarantined' && run.meta.callerId === callerId);
        expect(await listed(store, { callerId })).toEqual(own.map(({ runId }) => runId));
      }
      await store.close();
    }
  });

  test('opens no text of the runs of others: they do not make it slower (web 17)', async () => {
    const store = await checkCost((codec) => sqliteStore({ path: ':memory:', codec }));
    await store.close();
  });
});
