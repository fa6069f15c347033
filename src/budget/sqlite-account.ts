import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Layout } from '../sqlite/file.ts';
import { type Amounts, nothing } from './amounts.ts';
import type { Account, Moment, TimedAmounts } from './ledger.ts';
import type { Standing } from './store.ts';

const lists = ['calls', 'reservations', 'runs'] as const;
type List = (typeof lists)[number];

/** The amounts of one list of all callers. */
const tableOf = (list: List) => `
  CREATE TABLE ${list} (
    caller INTEGER NOT NULL,
    key TEXT NOT NULL,
    at REAL NOT NULL,
    tokens REAL NOT NULL,
    usd REAL NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (caller, key)
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Amounts are whole numbers, in columns for real ones because those cannot overflow. Times are of the wall clock, ms. Only
 * calls have an index by time: of what leaves the window there, none may be late, and the other lists are short, or are
 * looked through now and then. Each index more is a page more that each call writes.
 */
export const layout: Layout<Statements> = {
  applicationId: 0x50774264,
  version: 1,
  tables: `
    CREATE TABLE callers (
      no INTEGER PRIMARY KEY,
      caller TEXT NOT NULL UNIQUE,
      touched REAL NOT NULL,
      tokens REAL NOT NULL,
      usd REAL NOT NULL,
      seconds REAL NOT NULL,
      held_tokens REAL NOT NULL,
      held_usd REAL NOT NULL,
      held_seconds REAL NOT NULL
    ) STRICT;
    CREATE INDEX callers_touched ON callers (touched);
    ${lists.map(tableOf).join('')}
    CREATE INDEX calls_by_time ON calls (caller, at);
  `,
  prepare: (db) => new Statements(db),
};

interface CallerRow extends Amounts {
  readonly no: number;
  readonly touched: number;
  readonly held_tokens: number;
  readonly held_usd: number;
  readonly held_seconds: number;
}

/** Rows that are deleted at once of a caller that was not heard of for long. */
const ROWS_AT_ONCE = 1_000;

/** More rows are not looked through to say when a budget frees up. */
const MOST_LEAVING = 10_000;

/** That a caller was heard of is written down once in this part of the window. */
const TOUCHED_PART = 1 / 128;

/** The prepared statements of an open database. */
export class Statements {
  readonly lists: { readonly [L in List]: ListStatements };
  readonly find: StatementSync;
  readonly add: StatementSync;
  readonly put: StatementSync;
  readonly touch: StatementSync;
  readonly #idle: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync) {
    this.lists = {
      calls: new ListStatements(db, 'calls'),
      reservations: new ListStatements(db, 'reservations'),
      runs: new ListStatements(db, 'runs'),
    };
    this.find = db.prepare('SELECT * FROM callers WHERE caller = ?');
    this.add = db.prepare('INSERT INTO callers VALUES (NULL, ?, ?, 0, 0, 0, 0, 0, 0)');
    this.put = db.prepare(
      `UPDATE callers SET tokens = ?, usd = ?, seconds = ?, held_tokens = ?, held_usd = ?, held_seconds = ?
       WHERE no = ?`,
    );
    this.touch = db.prepare('UPDATE callers SET touched = ? WHERE no = ?');
    this.#idle = db.prepare('SELECT no FROM callers WHERE touched <= ? LIMIT 1');
    this.#forget = db.prepare('DELETE FROM callers WHERE no = ?');
  }

  /** Forgets a caller that has nothing left, or some of its rows when there are many. */
  forgetIdle({ now, runsMs, reservationMs }: Moment): void {
    const no = this.#idle.get(now - Math.max(runsMs, reservationMs))?.no;
    if (typeof no !== 'number') return;
    const isGone = lists.every((list) => Number(this.lists[list].forget.run(no, no).changes) < ROWS_AT_ONCE);
    if (isGone) this.#forget.run(no);
  }
}

class ListStatements {
  readonly get: StatementSync;
  readonly put: StatementSync;
  readonly remove: StatementSync;
  readonly sum: StatementSync;
  readonly removeUntil: StatementSync;
  readonly oldest: StatementSync;
  readonly clampFuture: StatementSync;
  readonly forget: StatementSync;

  constructor(db: DatabaseSync, list: List) {
    this.get = db.prepare(`SELECT tokens, usd, seconds FROM ${list} WHERE caller = ? AND key = ?`);
    this.put = db.prepare(`INSERT OR REPLACE INTO ${list} VALUES (?, ?, ?, ?, ?, ?)`);
    this.remove = db.prepare(`DELETE FROM ${list} WHERE caller = ? AND key = ?`);
    this.sum = db.prepare(
      `SELECT count(*) AS rows, total(tokens) AS tokens, total(usd) AS usd, total(seconds) AS seconds
       FROM ${list} WHERE caller = ? AND at <= ?`,
    );
    this.removeUntil = db.prepare(`DELETE FROM ${list} WHERE caller = ? AND at <= ?`);
    this.oldest = db.prepare(
      `SELECT at, tokens, usd, seconds FROM ${list} WHERE caller = ? ORDER BY at LIMIT ${MOST_LEAVING}`,
    );
    this.clampFuture = db.prepare(`UPDATE ${list} SET at = ? WHERE caller = ? AND at > ?`);
    this.forget = db.prepare(
      `DELETE FROM ${list} WHERE caller = ? AND key IN (SELECT key FROM ${list} WHERE caller = ? LIMIT ${ROWS_AT_ONCE})`,
    );
  }
}

/** The account of one caller within a transaction. Its row is made when something is first put into it. */
export class SqliteAccount implements Account {
  readonly calls: TimedAmounts;
  readonly reservations: TimedAmounts;
  readonly runs: TimedAmounts;
  sums: Standing;
  readonly #statements: Statements;
  readonly #loaded: Standing;
  #no: number | undefined;

  constructor(statements: Statements, callerId: string, moment: Moment) {
    const { now } = moment;
    const row = statements.find.get(callerId) as unknown as CallerRow | undefined;
    this.#statements = statements;
    this.#no = row?.no;
    this.sums = row ? standingOf(row) : { spent: nothing, reserved: nothing };
    this.#loaded = this.sums;
    const isDue = row !== undefined && Math.abs(now - row.touched) > TOUCHED_PART * moment.windowMs;
    if (isDue) this.#touch(row, now);
    const place: Place = {
      no: () => this.#no,
      made: () => {
        this.#no ??= Number(statements.add.run(callerId, now).lastInsertRowid);
        return this.#no;
      },
    };
    const { calls, reservations, runs } = statements.lists;
    this.calls = new SqliteList(calls, place);
    this.reservations = new SqliteList(reservations, place);
    this.runs = new SqliteList(runs, place, { mayStay: !isDue });
  }

  save(): void {
    if (this.#no === undefined || this.sums === this.#loaded) return;
    const { spent, reserved } = this.sums;
    this.#statements.put.run(...valuesOf(spent), ...valuesOf(reserved), this.#no);
  }

  #touch({ no, touched }: CallerRow, now: number): void {
    this.#statements.touch.run(now, no);
    if (touched < now) return;
    // The wall clock was set back: what was written before that must not count for longer than the window.
    for (const list of lists) this.#statements.lists[list].clampFuture.run(now, no, now);
  }
}

interface Place {
  /** The number of the caller; undefined when it has no row. */
  readonly no: () => number | undefined;
  /** Its number, with a row. */
  readonly made: () => number;
}

class SqliteList implements TimedAmounts {
  readonly #list: ListStatements;
  readonly #place: Place;
  readonly #mayStay: boolean;

  /** @param options `mayStay`: what is too old may be removed another time */
  constructor(list: ListStatements, place: Place, options: { readonly mayStay?: boolean } = {}) {
    this.#list = list;
    this.#place = place;
    this.#mayStay = options.mayStay ?? false;
  }

  get(key: string): Amounts | undefined {
    const no = this.#place.no();
    return no === undefined ? undefined : (this.#list.get.get(no, key) as unknown as Amounts | undefined);
  }

  put(key: string, at: number, amounts: Amounts): void {
    this.#list.put.run(this.#place.made(), key, at, ...valuesOf(amounts));
  }

  remove(key: string): void {
    const no = this.#place.no();
    if (no !== undefined) this.#list.remove.run(no, key);
  }

  removeUntil(at: number): Amounts {
    const no = this.#place.no();
    if (no === undefined || this.#mayStay) return nothing;
    const { rows, ...sum } = this.#list.sum.get(no, at) as unknown as Amounts & { readonly rows: number };
    if (rows > 0) this.#list.removeUntil.run(no, at);
    return sum;
  }

  *oldest(): Iterable<{ readonly at: number; readonly amounts: Amounts }> {
    const no = this.#place.no();
    if (no === undefined) return;
    for (const { at, ...amounts } of this.#list.oldest.all(no)) {
      yield { at: Number(at), amounts: amounts as unknown as Amounts };
    }
  }
}

function valuesOf({ tokens, usd, seconds }: Amounts): [number, number, number] {
  return [tokens, usd, seconds];
}

function standingOf({ tokens, usd, seconds, held_tokens, held_usd, held_seconds }: CallerRow): Standing {
  return {
    spent: { tokens, usd, seconds },
    reserved: { tokens: held_tokens, usd: held_usd, seconds: held_seconds },
  };
}
