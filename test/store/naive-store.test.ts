import { describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import type { CheckpointStore } from '../../src/store/port.ts';
import { openStepRecord, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { checkpointStoreContract } from '../../src/testing/store-contract/store-contract.ts';
import { type Lie, naiveStore } from '../fixtures/naive-store.ts';

/** The titles of the cases with these words that a lying store fails. */
async function broken(lies: readonly Lie[], words: string): Promise<string[]> {
  const storages = new WeakMap<CheckpointStore, CheckpointStore>();
  const open = (storage: CheckpointStore) => {
    const store: CheckpointStore = naiveStore(storage, { lies });
    storages.set(store, storage);
    return store;
  };
  const cases = checkpointStoreContract({
    create: async () => open(memoryStore()),
    reopen: async (store) => open(storages.get(store) ?? memoryStore()),
  });
  const failed = await Promise.all(
    cases
      .filter(({ title }) => title.includes(words))
      .map(({ title, run }) =>
        run().then(
          () => [],
          () => [title],
        ),
      ),
  );
  return failed.flat();
}

describe('the naive store', () => {
  test('the contract notices each of its lies', async () => {
    expect(await broken(['late'], 'opened again')).not.toEqual([]);
    expect(await broken(['unowned'], 'no other owner gets one')).not.toEqual([]);
    expect(await broken(['forgetful'], 'with its open step')).not.toEqual([]);
  });

  test('loses what it acknowledged just before a crash', async () => {
    const storage = memoryStore();
    const store = naiveStore(storage, { lies: ['late'], delayMs: 5 });
    await store.save(sampleRecord('run'));
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    store.crash();
    expect(store.pending).toBe(0);
    expect(await naiveStore(storage).load('run')).toBe(null);
    await store.save(sampleRecord('run'));
    while (store.pending > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await naiveStore(storage).load('run')).toEqual(sampleRecord('run'));
  });

  test('forgets the ledger of an open step', async () => {
    const store = naiveStore(memoryStore());
    await store.save(openStepRecord('run'));
    expect(await store.load('run')).not.toHaveProperty('openStep');
  });
});
