/// <reference lib="esnext.disposable" preserve="true" />
import { SqliteFile } from '../sqlite/file.ts';
import { nextTurn } from '../values/event-loop.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { BudgetLedger } from './ledger.ts';
import { SqliteAccount } from './sqlite-account.ts';
import { type BudgetStatements, layout } from './sqlite-layout.ts';
import type { BudgetStore, BudgetTerms } from './store.ts';
import { type AskedAmount, type Ledgers, storeOf } from './store-on-ledgers.ts';

export interface SqliteBudgetOptions {
  /** The file; made with its folder at the first use. It must not be the file of a `sqliteStore`. */
  readonly path: string;
  /** How long a call waits while another process holds the lock, ms; default 10,000. The event loop is free meanwhile. */
  readonly busyTimeoutMs?: number | undefined;
}

const optionKeys: KnownKeys<SqliteBudgetOptions> = {
  path: true,
  busyTimeoutMs: true,
};

/** Stores a budget in a file. */
export interface SqliteBudget extends BudgetStore {
  /** Closes the file. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The `store` of a budget that all processes of one machine share, and that survives them. Times are of the machine's wall
 * clock. Counts survive the death of a process. A power loss may undo the counts of the last seconds; a run that continues
 * from its record then counts them again, once. Do not put the file on a network file system.
 *
 * If the file cannot be opened, is locked for too long or is full, calls reject with StoreUnavailableError or
 * StoreFullError.
 *
 * @example createBudget({ usd: 5, prices, store: sqliteBudget({ path: 'budget.db' }) })
 */
export function sqliteBudget(options: SqliteBudgetOptions): SqliteBudget {
  checkKeys(options, optionKeys, { of: 'sqliteBudget' });
  const { path, busyTimeoutMs = 10_000 } = options;
  const file = new SqliteFile(layout, { path, busyTimeoutMs });
  const close = async () => file.close();
  return { ...storeOf(new SqliteLedgers(file)), isLocal: true, close, [Symbol.asyncDispose]: close };
}

/** Spending of runs is kept for this many windows: a run that continues later must not have it counted twice. */
const RUNS_WINDOWS = 12;

class SqliteLedgers implements Ledgers {
  readonly #file: SqliteFile<BudgetStatements>;

  constructor(file: SqliteFile<BudgetStatements>) {
    this.#file = file;
  }

  async with<T>({ callerId }: AskedAmount, terms: BudgetTerms, work: (ledger: BudgetLedger) => T): Promise<T> {
    for (;;) {
      const done = await this.#file.transaction((statements) => {
        const moment = { ...terms, now: terms.clock.now(), runsMs: RUNS_WINDOWS * terms.windowMs };
        statements.forgetIdle(moment);
        const account = new SqliteAccount(statements, callerId, moment);
        const ledger = new BudgetLedger(account, moment);
        const result = account.isBehind ? undefined : { value: work(ledger) };
        account.save();
        return result;
      });
      if (done) return done.value;
      await nextTurn();
    }
  }
}
