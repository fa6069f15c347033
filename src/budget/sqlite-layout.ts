import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { FileLayout } from '../sqlite/file.ts';
import type { Moment } from './ledger.ts';

/** The lists of a caller's amounts, each a table of a budget's SQLite file. */
export const lists = ['calls', 'reservations', 'runs'] as const;
type List = (typeof lists)[number];

/** One list of amounts of all callers. */
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
 * The tables of a budget's SQLite file. Amounts are whole numbers, stored in REAL columns because those cannot overflow.
 * Times are of the wall clock, ms. Only calls have an index by time: they must leave the window on time. The other lists
 * are short, or are scanned now and then. Each further index is one more page that each call writes.
 */
export const layout: FileLayout<BudgetStatements> = {
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
  prepare: (db) => new BudgetStatements(db),
};

/** One transaction removes at most this many rows of a list, so that it does not block the event loop for long. */
export const ROWS_AT_ONCE = 1_000;

/** The most rows that are read to find out when some of a budget becomes free. */
const MOST_LEAVING = 2_000;

/** The prepared SQL statements of a budget's open database. */
export class BudgetStatements {
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

  /** Removes a caller that has nothing left, or some of its rows if there are many. */
  forgetIdle({ now, runsMs, reservationMs }: Moment): void {
    const no = this.#idle.get(now - Math.max(runsMs, reservationMs))?.no;
    if (typeof no !== 'number') return;
    const isGone = lists.every((list) => Number(this.lists[list].forget.run(no, no).changes) < ROWS_AT_ONCE);
    if (isGone) this.#forget.run(no);
  }
}

/** The prepared SQL statements of one list of a budget's database. */
export class ListStatements {
  readonly get: StatementSync;
  readonly put: StatementSync;
  readonly remove: StatementSync;
  readonly hasUntil: StatementSync;
  readonly removeUntil: StatementSync;
  readonly oldest: StatementSync;
  readonly clampFuture: StatementSync;
  readonly forget: StatementSync;

  constructor(db: DatabaseSync, list: List) {
    this.get = db.prepare(`SELECT tokens, usd, seconds FROM ${list} WHERE caller = ? AND key = ?`);
    this.put = db.prepare(`INSERT OR REPLACE INTO ${list} VALUES (?, ?, ?, ?, ?, ?)`);
    this.remove = db.prepare(`DELETE FROM ${list} WHERE caller = ? AND key = ?`);
    this.hasUntil = db.prepare(`SELECT 1 FROM ${list} WHERE caller = ? AND at <= ? LIMIT 1`);
    this.removeUntil = db.prepare(
      `DELETE FROM ${list} WHERE caller = ? AND key IN
       (SELECT key FROM ${list} WHERE caller = ? AND at <= ? LIMIT ${ROWS_AT_ONCE}) RETURNING tokens, usd, seconds`,
    );
    this.oldest = db.prepare(
      `SELECT at, tokens, usd, seconds FROM ${list} WHERE caller = ? ORDER BY at LIMIT ${MOST_LEAVING}`,
    );
    this.clampFuture = db.prepare(`UPDATE ${list} SET at = ? WHERE caller = ? AND at > ?`);
    this.forget = db.prepare(
      `DELETE FROM ${list} WHERE caller = ? AND key IN (SELECT key FROM ${list} WHERE caller = ? LIMIT ${ROWS_AT_ONCE})`,
    );
  }
}
