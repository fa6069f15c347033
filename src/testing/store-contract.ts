import type { CheckpointStore } from '../store/port.ts';
import { appendCases } from './store-contract-append-cases.ts';
import { type ContractCase, type Draft, type StoreUnderTest, toCase } from './store-contract-case.ts';
import { claimCases } from './store-contract-claim-cases.ts';
import { controlCases } from './store-contract-control-cases.ts';
import { outcomeCases } from './store-contract-outcome-cases.ts';
import { recordCases } from './store-contract-record-cases.ts';
import { safetyCases } from './store-contract-safety-cases.ts';
import { storeCases } from './store-contract-store-cases.ts';

export type { ContractCase, DamageKind, StoreUnderTest } from './store-contract-case.ts';

const drafts: readonly Draft[] = [
  ...recordCases,
  ...storeCases,
  ...safetyCases,
  ...appendCases,
  ...claimCases,
  ...outcomeCases,
  ...controlCases,
];

/**
 * What the runtime relies on in a store, as cases for any test runner. Cases about methods that a store does not have are
 * skipped, so that a store of the four methods alone passes.
 *
 * @example for (const { title, run } of checkpointStoreContract({ create })) test(title, run);
 */
export function checkpointStoreContract<S extends CheckpointStore>(store: StoreUnderTest<S>): ContractCase[] {
  return drafts
    .filter(({ needs }) => needs === undefined || store[needs] !== undefined)
    .map((draft) => toCase(draft, store));
}
