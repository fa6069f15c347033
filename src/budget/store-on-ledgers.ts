import type { BudgetLedger } from './ledger.ts';
import type { BudgetStore, BudgetTerms } from './store.ts';

/** What a call is about. */
export interface AskedAmount {
  readonly callerId: string;
  /** The key of a call, which the work may read. */
  readonly key?: string;
  /** The run whose spending the work may read. */
  readonly runId?: string;
  /** The work asks which amounts leave the window next. */
  readonly isLeaving?: boolean;
}

/** Where ledgers are stored. */
export interface Ledgers {
  /** Opens the ledger of a caller and runs `work` on it: all changes are stored or none, without other work in between. */
  with<T>(asked: AskedAmount, terms: BudgetTerms, work: (ledger: BudgetLedger) => T): Promise<T>;
}

/** Makes a budget's store out of ledgers: the operations that memory, SQLite and PostgreSQL have in common. */
export function storeOf(ledgers: Ledgers): BudgetStore {
  return {
    standing: (callerId, terms) => ledgers.with({ callerId }, terms, (ledger) => ledger.standing()),
    leaving: (callerId, terms) => ledgers.with({ callerId, isLeaving: true }, terms, (ledger) => ledger.leaving()),
    reserve: ({ callerId, key }, { estimate, isAllowed }, terms) =>
      ledgers.with({ callerId, key }, terms, (ledger) => {
        const standing = ledger.standing(key);
        if (!isAllowed(standing)) return standing;
        ledger.open(key, estimate);
        return undefined;
      }),
    commit: (call, amountsFor, terms) =>
      ledgers.with(call, terms, (ledger) => {
        const amounts = amountsFor(ledger.close(call.key));
        ledger.count(call, amounts);
        return amounts;
      }),
    refund: ({ callerId, key }, terms) => ledgers.with({ callerId, key }, terms, (ledger) => void ledger.close(key)),
    restore: ({ callerId, runId, spent }, terms) =>
      ledgers.with({ callerId, runId }, terms, (ledger) =>
        ledger.restore(runId, spent, `restored ${crypto.randomUUID()}`),
      ),
  };
}
