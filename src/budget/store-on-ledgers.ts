import type { Ledger } from './ledger.ts';
import type { BudgetStore, BudgetTerms } from './store.ts';

/** Where ledgers are stored. */
export interface Ledgers {
  /** Opens the ledger of a caller and runs `work` on it: all changes are stored or none, without other work in between. */
  with<T>(callerId: string, terms: BudgetTerms, work: (ledger: Ledger) => T): Promise<T>;
}

/** Makes a budget's store out of ledgers: the operations that memory and SQLite have in common. */
export function storeOf(ledgers: Ledgers): BudgetStore {
  return {
    standing: (callerId, terms) => ledgers.with(callerId, terms, (ledger) => ledger.standing()),
    leaving: (callerId, terms) => ledgers.with(callerId, terms, (ledger) => ledger.leaving()),
    reserve: ({ callerId, key }, { estimate, isAllowed }, terms) =>
      ledgers.with(callerId, terms, (ledger) => {
        const standing = ledger.standing(key);
        if (!isAllowed(standing)) return standing;
        ledger.open(key, estimate);
        return undefined;
      }),
    commit: (call, amountsFor, terms) =>
      ledgers.with(call.callerId, terms, (ledger) => {
        const amounts = amountsFor(ledger.close(call.key));
        ledger.count(call, amounts);
        return amounts;
      }),
    refund: ({ callerId, key }, terms) => ledgers.with(callerId, terms, (ledger) => void ledger.close(key)),
    restore: ({ callerId, runId, spent }, terms) =>
      ledgers.with(callerId, terms, (ledger) => ledger.restore(runId, spent, `restored ${crypto.randomUUID()}`)),
  };
}
