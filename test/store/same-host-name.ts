import type { OwningStore } from 'pawl/stores/kit';
import type { testClock } from 'pawl/testing';
import { expect } from 'vitest';
import { newOwner } from '../../src/store/owner.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';

/** A run whose owner has the name of this machine, and is on another one: it is waited for like any stranger. */
export async function expectStranger(store: OwningStore, clock: ReturnType<typeof testClock>): Promise<void> {
  const [host, , namespace, ...process] = newOwner().split('|');
  const elsewhere = [host, '11111111-2222-3333-4444-555555555555', namespace, ...process].join('|');
  await store.save(sampleRecord('run'));
  const claim = await store.claim('run', elsewhere, 1_000);
  expect(await store.claim('run', newOwner(), 1_000)).toBe(null);
  expect(await store.listInterrupted()).toMatchObject([{ owner: elsewhere }]);
  await store.save(sampleRecord('run'), { claim: claim ?? undefined });
  await clock.advance(1_000);
  expect(await store.claim('run', newOwner(), 1_000)).toMatchObject({ epoch: 2 });
}
