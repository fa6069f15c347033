import { add, type BudgetAmounts, nothing } from '../../../budget/amounts.ts';
import type { Account, Moment, TimedAmounts } from '../../../budget/ledger.ts';
import type { StandingAmounts } from '../../../budget/store.ts';
import type { AskedAmount } from '../../../budget/store-on-ledgers.ts';
import type { PoolSession, Row } from '../pool.ts';

/** The columns of amounts, in the order of their parameters. */
export const amountColumns = ['tokens', 'usd', 'seconds'] as const;

const lists = ['calls', 'reservations', 'runs'] as const;
type List = (typeof lists)[number];

/** The most rows that are read to find out when some of a budget becomes free. */
const MOST_LEAVING = 2_000;

/** The account of one caller, within one transaction that holds its row. What a call needs of it is read first. */
export class PostgresAccount implements Account {
  readonly calls: PostgresList = new PostgresList();
  readonly reservations: PostgresList = new PostgresList();
  readonly runs: PostgresList = new PostgresList();
  sums: StandingAmounts = { spent: nothing, reserved: nothing };
  #loaded: StandingAmounts | undefined;
  readonly #session: PoolSession;
  readonly #table: string;
  readonly #caller: string;

  constructor(session: PoolSession, table: string, caller: string) {
    this.#session = session;
    this.#table = table;
    this.#caller = caller;
  }

  /** Removes what is past its time, and reads what the call is about. @param row the row of the caller */
  async load({ key, runId, isLeaving }: AskedAmount, moment: Moment, row: Row): Promise<void> {
    const { now, windowMs, reservationMs, runsMs } = moment;
    this.sums = { spent: amountsIn(row), reserved: amountsIn(row, 'held_') };
    this.#loaded = this.sums;
    const until = { calls: now - windowMs, reservations: now - reservationMs, runs: now - runsMs };
    const past = lists.map((list, i) => `(list = '${list}' AND at <= $${i + 2}::pg_catalog.float8)`).join(' OR ');
    const gone = await this.#ask(
      `WITH gone AS (DELETE FROM ${this.#table} WHERE caller = pg_catalog.decode($1, 'hex') AND (${past}) RETURNING *)
       SELECT list, ${amountColumns.map((name) => `pg_catalog.sum(${name}) AS ${name}`).join(', ')} FROM gone GROUP BY list`,
      lists.map((list) => until[list]),
    );
    for (const each of gone) this[each.list as List].removed = amountsIn(each);
    const keys = [key, runId].flatMap((each) => (each === undefined ? [] : [hexed(each)]));
    const known =
      keys.length === 0
        ? []
        : await this.#ask(
            `SELECT list, pg_catalog.encode(key, 'hex') AS key, at, ${amountColumns.join(', ')} FROM ${this.#table}
             WHERE caller = pg_catalog.decode($1, 'hex') AND key IN (SELECT pg_catalog.decode(k, 'hex') FROM pg_catalog.unnest($2::text[]) k)`,
            [keys],
          );
    for (const each of known) this[each.list as List].known.set(String(each.key), amountsIn(each));
    if (!isLeaving) return;
    const oldest = await this.#ask(
      `SELECT at, ${amountColumns.join(', ')} FROM ${this.#table}
       WHERE caller = pg_catalog.decode($1, 'hex') AND list = 'calls' ORDER BY at LIMIT ${MOST_LEAVING}`,
    );
    this.calls.first = oldest.map((each) => ({ at: Number(each.at), amounts: amountsIn(each) }));
  }

  /** Writes what has changed. @param callers the table of callers */
  async save(callers: string): Promise<void> {
    for (const list of lists) for (const [key, change] of this[list].changes) await this.#write(list, key, change);
    if (this.sums === this.#loaded) return;
    const { spent, reserved } = this.sums;
    const set = ['', 'held_'].flatMap((prefix) => amountColumns.map((name) => `${prefix}${name}`));
    await this.#ask(
      `UPDATE ${callers} SET ${set.map((name, i) => `${name} = $${i + 2}::pg_catalog.float8`).join(', ')}
       WHERE caller = pg_catalog.decode($1, 'hex')`,
      [...valuesOf(spent), ...valuesOf(reserved)],
    );
  }

  async #write(list: List, key: string, change: Put | null): Promise<void> {
    const where = `caller = pg_catalog.decode($1, 'hex') AND list = $2 AND key = pg_catalog.decode($3, 'hex')`;
    if (!change) await this.#ask(`DELETE FROM ${this.#table} WHERE ${where}`, [list, key]);
    else
      await this.#ask(
        `INSERT INTO ${this.#table} (caller, list, key, at, ${amountColumns.join(', ')})
         VALUES (pg_catalog.decode($1, 'hex'), $2, pg_catalog.decode($3, 'hex'), $4, $5, $6, $7)
         ON CONFLICT (caller, list, key) DO UPDATE SET at = excluded.at, ${amountColumns.map((name) => `${name} = excluded.${name}`).join(', ')}`,
        [list, key, change.at, ...valuesOf(change.amounts)],
      );
  }

  #ask(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#session.query(text, [this.#caller, ...values]);
  }
}

interface Put {
  readonly at: number;
  readonly amounts: BudgetAmounts;
}

/** One list of the account, as far as a call is about it. */
class PostgresList implements TimedAmounts {
  /** The sum of what was past its time. */
  removed: BudgetAmounts = nothing;
  readonly known: Map<string, BudgetAmounts> = new Map();
  first: readonly Put[] = [];
  /** By key as hex; null = it is removed. */
  readonly changes: Map<string, Put | null> = new Map();

  get(key: string): BudgetAmounts | undefined {
    return this.known.get(hexed(key));
  }

  put(key: string, at: number, amounts: BudgetAmounts): void {
    this.known.set(hexed(key), amounts);
    this.changes.set(hexed(key), { at, amounts });
  }

  remove(key: string): void {
    this.known.delete(hexed(key));
    this.changes.set(hexed(key), null);
  }

  removeUntil(): BudgetAmounts {
    const sum = add(this.removed, nothing);
    this.removed = nothing;
    return sum;
  }

  oldest(): Iterable<Put> {
    return this.first;
  }
}

function amountsIn(row: Row, prefix = ''): BudgetAmounts {
  const [tokens = 0, usd = 0, seconds = 0] = amountColumns.map((name) => Number(row[`${prefix}${name}`] ?? 0));
  return { tokens, usd, seconds };
}

const valuesOf = (amounts: BudgetAmounts): number[] => amountColumns.map((name) => amounts[name]);

const hexed = (text: string) => Buffer.from(text, 'utf8').toString('hex');
