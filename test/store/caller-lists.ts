import { type CheckpointStore, type Codec, createExecutor, encrypt, type MemoryStore } from 'pawl';
import type { Cursor } from 'pawl/stores/kit';
import { scriptedModel } from 'pawl/testing';
import { expect } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';

export type ListingStore = Pick<MemoryStore, 'save' | 'claim' | 'due' | 'listInterrupted'>;

/** The year 2100. */
const LATER = 4_102_444_800_000;

/** A codec with a key of its own. */
export function codec(): Codec {
  const key = Buffer.from(Array.from({ length: 32 }, (_, i) => (i * 89 + 7) % 251)).toString('base64');
  return encrypt({ keys: { k: key }, current: 'k' });
}

/** Records of some callers, one ms apart; those of `resting` rest. */
export async function fill(
  store: ListingStore,
  callers: readonly string[],
  resting: readonly number[] = [],
): Promise<void> {
  for (const [i, callerId] of callers.entries()) {
    const runId = `${callerId}-${i}`;
    const record = sampleRecord(runId, { updatedAt: 1_000 + i });
    await store.save({ ...record, meta: { ...record.meta, callerId } });
    if (!resting.includes(i)) continue;
    const claim = await store.claim(runId, 'me', 60_000);
    if (claim) await store.due.leave(claim, { dueAt: LATER, readUpTo: 0 });
  }
}

/** The whole list of a caller, in pages. */
export async function listed(
  store: ListingStore,
  options: { readonly callerId: string; readonly status?: 'waiting' },
  limit = 2,
) {
  const runIds: string[] = [];
  for (let after: Cursor | undefined; ; ) {
    const page = await store.listInterrupted({ ...options, limit, ...(after ? { after } : {}) });
    runIds.push(...page.map(({ runId }) => runId));
    const last = page.at(-1);
    if (page.length < limit || !last || !('updatedAt' in last)) return runIds;
    after = { updatedAt: last.updatedAt ?? 0, runId: last.runId };
  }
}

/** Fills an empty store, and checks the lists of its callers. */
export async function checkLists(store: ListingStore): Promise<void> {
  const long = 'x'.repeat(300);
  await fill(store, ['ada', 'bob', 'ada', 'bob', 'ada', `${long}a`, `${long}b`, 'ada', 'bob'], [2, 3, 7]);
  expect(await listed(store, { callerId: 'ada' })).toEqual(['ada-0', 'ada-4']);
  expect(await listed(store, { callerId: 'ada', status: 'waiting' })).toEqual(['ada-2', 'ada-7']);
  expect(await listed(store, { callerId: 'bob' }, 1)).toEqual(['bob-1', 'bob-8']);
  // Their keys are the same: databases index short texts only.
  expect(await listed(store, { callerId: `${long}b` }, 1)).toEqual([`${long}b-6`]);
  expect(await listed(store, { callerId: 'eve' })).toEqual([]);
}

/** Checks that a list of a caller opens no text of the runs of others: they do not make it slower. */
export async function checkCost<S extends ListingStore & CheckpointStore>(make: (codec: Codec) => S): Promise<S> {
  const counted = { opened: 0 };
  const inner = codec();
  const counting: Codec = {
    ...inner,
    open: (sealed, place) => {
      counted.opened += 1;
      return inner.open(sealed, place);
    },
  };
  const store = make(counting);
  await fill(
    store,
    Array.from({ length: 300 }, (_, i) => (i % 100 === 7 ? 'ada' : 'bob')),
  );
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store });
  counted.opened = 0;
  expect((await executor.list({ callerId: 'ada' })).map(({ runId }) => runId)).toEqual(['ada-7', 'ada-107', 'ada-207']);
  expect(counted.opened).toBeLessThanOrEqual(3 * 2);
  expect(await executor.waiting({ callerId: 'ada' })).toEqual([]);
  expect(counted.opened).toBeLessThanOrEqual(2 * 3 * 2);
  await executor.shutdown();
  return store;
}
