import { BudgetLedger } from '../../../budget/ledger.ts';
import type { BudgetStore, BudgetTerms } from '../../../budget/store.ts';
import { type AskedAmount, type Ledgers, storeOf } from '../../../budget/store-on-ledgers.ts';
import { systemClock } from '../../../values/clock.ts';
import { checkKeys, type KnownKeys } from '../../../values/known-options.ts';
import { isTableMissing, serverError } from '../errors.ts';
import { quotedSchema } from '../parameters.ts';
import { Connections, inLockedTransaction, inTransaction, type PoolSession, type PostgresPool } from '../pool.ts';
import { insisting } from '../server.ts';
import { amountColumns, PostgresAccount } from './account.ts';

export interface PostgresBudgetOptions {
  /** A `Pool` of `pg`. It may be that of the store. */
  readonly pool: PostgresPool;
  /** Where its tables are; default `pawl`, beside those of the store. */
  readonly schema?: string | undefined;
  /** How long a call waits for the database, its retries included, ms; default 10,000. */
  readonly timeoutMs?: number | undefined;
}

const optionKeys: KnownKeys<PostgresBudgetOptions> = { pool: true, schema: true, timeoutMs: true };

/**
 * The `store` of a budget that all processes of all hosts share. Times are of the clock of the database. The first use creates its two
 * tables. Each call is one transaction that holds the row of its caller.
 * @throws {TypeError} for an unknown option, an invalid schema name, or a value that is not a pool
 * @example createBudget({ usd: 5, prices, store: postgresBudget({ pool }) })
 */
export function postgresBudget(options: PostgresBudgetOptions): BudgetStore {
  const of = 'postgresBudget';
  checkKeys(options, optionKeys, { of });
  const { pool, schema = 'pawl', timeoutMs = 10_000 } = options;
  if (typeof pool?.connect !== 'function') throw new TypeError(`${of} needs a pool: a Pool of pg`);
  if (!(timeoutMs > 0)) throw new TypeError(`${of}: timeoutMs must be above 0, not ${timeoutMs}`);
  return storeOf(new PostgresLedgers(pool, { schema, timeoutMs }));
}

/** Spending of runs is kept for this many windows: a run that continues later must not have it counted twice. */
const RUNS_WINDOWS = 12;
/** One of so many calls removes a caller that has nothing left. */
const FORGET_EVERY = 50;

class PostgresLedgers implements Ledgers {
  readonly #connections: Connections;
  readonly #name: string;
  readonly #timeoutMs: number;
  readonly #schema: string;
  readonly #callers: string;
  readonly #amounts: string;
  #isReady = false;
  #calls = 0;

  constructor(pool: PostgresPool, { schema, timeoutMs }: { readonly schema: string; readonly timeoutMs: number }) {
    this.#schema = quotedSchema(schema);
    this.#callers = `${this.#schema}.budget_callers`;
    this.#amounts = `${this.#schema}.budget_amounts`;
    this.#connections = new Connections(pool);
    this.#name = `the PostgreSQL budget in schema ${schema}`;
    this.#timeoutMs = timeoutMs;
  }

  /** May be done twice, where the answer was lost: each call replaces what it has done before. */
  async with<T>(asked: AskedAmount, terms: BudgetTerms, work: (ledger: BudgetLedger) => T): Promise<T> {
    try {
      return await insisting(this.#timeoutMs, (ms) =>
        this.#connections.use(ms, async (session) => {
          if (!this.#isReady) await this.#prepare(session);
          return inTransaction(session, () => this.#ask(session, { asked, terms, work }));
        }),
      );
    } catch (error) {
      if (isTableMissing(error)) this.#isReady = false;
      throw serverError(error, this.#name);
    }
  }

  async #ask<T>(
    session: PoolSession,
    {
      asked,
      terms,
      work,
    }: { readonly asked: AskedAmount; readonly terms: BudgetTerms; readonly work: (ledger: BudgetLedger) => T },
  ): Promise<T> {
    const { callerId } = asked;
    const at = terms.clock === systemClock ? null : terms.clock.now();
    // It locks the row of the caller: all changes of one caller are made one after the other.
    const [row = {}] = await session.query(
      `INSERT INTO ${this.#callers} AS c (caller, touched) VALUES (pg_catalog.decode($1, 'hex'), ${NOW})
       ON CONFLICT (caller) DO UPDATE SET touched = excluded.touched RETURNING c.*`,
      [hexed(callerId), at],
    );
    const moment = { ...terms, now: Number(row.touched), runsMs: RUNS_WINDOWS * terms.windowMs };
    const account = new PostgresAccount(session, this.#amounts, hexed(callerId));
    await account.load(asked, moment, row);
    const value = work(new BudgetLedger(account, moment));
    await account.save(this.#callers);
    if (this.#calls++ % FORGET_EVERY === 0) await this.#forgetIdle(session, moment);
    return value;
  }

  async #forgetIdle(
    session: PoolSession,
    { now, runsMs, reservationMs }: { now: number; runsMs: number; reservationMs: number },
  ) {
    const idle = `SELECT caller FROM ${this.#callers} WHERE touched <= $1::pg_catalog.float8 LIMIT 1 FOR UPDATE SKIP LOCKED`;
    await session.query(
      `WITH gone AS (DELETE FROM ${this.#callers} WHERE caller IN (${idle}) RETURNING caller)
       DELETE FROM ${this.#amounts} WHERE caller IN (SELECT caller FROM gone)`,
      [now - Math.max(runsMs, reservationMs)],
    );
  }

  /** Makes the tables, unless they are there: then no right to make any is needed. */
  async #prepare(session: PoolSession): Promise<void> {
    const isThere = async () => {
      const [found] = await session.query(`SELECT pg_catalog.to_regclass($1)::pg_catalog.text AS found`, [
        this.#amounts,
      ]);
      return found?.found !== null;
    };
    if (!(await isThere()))
      await inLockedTransaction(session, [`pawl budget ${this.#schema}`], async () => {
        if (await isThere()) return;
        // `IF NOT EXISTS` would need the right to create schemas even if there is nothing to create.
        const [found] = await session.query('SELECT pg_catalog.to_regnamespace($1)::pg_catalog.text AS found', [
          this.#schema,
        ]);
        if (found?.found === null) await session.query(`CREATE SCHEMA ${this.#schema}`);
        const columns = (prefix: string) =>
          amountColumns.map((name) => `${prefix}${name} double precision NOT NULL DEFAULT 0`).join(', ');
        await session.query(
          `CREATE TABLE ${this.#callers} (caller bytea PRIMARY KEY, touched double precision NOT NULL, ${columns('')}, ${columns('held_')})`,
        );
        await session.query(`CREATE INDEX ON ${this.#callers} (touched)`);
        await session.query(
          `CREATE TABLE ${this.#amounts} (caller bytea, list text COLLATE "C", key bytea, at double precision NOT NULL, ${columns('')},
           PRIMARY KEY (caller, list, key))`,
        );
        await session.query(`CREATE INDEX ON ${this.#amounts} (caller, list, at)`);
      });
    this.#isReady = true;
  }
}

/** The clock of the database, unless a host gives its own; ms. */
const NOW =
  'coalesce($2::pg_catalog.float8, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::pg_catalog.float8)';

const hexed = (text: string) => Buffer.from(text, 'utf8').toString('hex');
