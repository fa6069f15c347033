import type { CheckpointStore } from '../../store/port.ts';
import { appendCases } from './append-cases.ts';
import { type ContractCase, type Draft, type StoreUnderTest, toCase } from './case.ts';
import { changeCases } from './change-cases.ts';
import { claimCases } from './claim-cases.ts';
import { controlCases } from './control-cases.ts';
import { definitionCases } from './definition-cases.ts';
import { dueCases } from './due-cases.ts';
import { eventCases } from './event-cases.ts';
import { giveBackCases } from './give-back-cases.ts';
import { historyCases } from './history-cases.ts';
import { journalCases } from './journal-cases.ts';
import { limitCases } from './limits/limit-cases.ts';
import { deliveryCases, outcomeCases } from './outcome-cases.ts';
import { recordCases } from './record-cases.ts';
import { safetyCases } from './safety-cases.ts';
import { scheduleCases } from './schedules/schedule-cases.ts';
import { storeCases } from './store-cases.ts';
import { takeCases } from './take-cases.ts';
import { threadCases } from './thread-cases.ts';

export type { ContractCase, DamageKind, StoreUnderTest } from './case.ts';

const drafts: readonly Draft[] = [
  ...recordCases,
  ...storeCases,
  ...safetyCases,
  ...appendCases,
  ...claimCases,
  ...outcomeCases,
  ...deliveryCases,
  ...controlCases,
  ...dueCases,
  ...takeCases,
  ...giveBackCases,
  ...definitionCases,
  ...eventCases,
  ...historyCases,
  ...threadCases,
  ...scheduleCases,
  ...limitCases,
  ...journalCases,
  ...changeCases,
];

/**
 * Returns the cases of the store contract for any test runner: what the runtime needs of a store. Cases about methods that
 * a store does not have are skipped, so that a store with only the four methods passes.
 *
 * @example for (const { title, run } of checkpointStoreContract({ create })) test(title, run);
 */
export function checkpointStoreContract<S extends CheckpointStore>(store: StoreUnderTest<S>): ContractCase[] {
  return drafts
    .filter(({ needs }) => needs === undefined || store[needs] !== undefined)
    .map((draft) => toCase(draft, store));
}
