import { add, type BudgetAmounts, nothing } from './amounts.ts';
import type { Account, Moment, TimedAmounts } from './ledger.ts';
import { type BudgetStatements, type ListStatements, lists, ROWS_AT_ONCE } from './sqlite-layout.ts';
import type { StandingAmounts } from './store.ts';

interface CallerRow extends BudgetAmounts {
  readonly no: number;
  readonly touched: number;
  readonly held_tokens: number;
  readonly held_usd: number;
  readonly held_seconds: number;
}

/** The use of a caller is noted at most once in this part of the window. */
const TOUCHED_PART = 1 / 128;

/** The account of one caller in a budget's SQLite file, within one transaction. Its row is inserted at the first write. */
export class SqliteAccount implements Account {
  readonly calls: SqliteList;
  readonly reservations: SqliteList;
  readonly runs: SqliteList;
  sums: StandingAmounts;
  readonly #statements: BudgetStatements;
  readonly #loaded: StandingAmounts;
  #no: number | undefined;

  constructor(statements: BudgetStatements, callerId: string, moment: Moment) {
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

  /** Not all old rows were removed: the sums are still too high. */
  get isBehind(): boolean {
    return this.calls.hasMore || this.reservations.hasMore;
  }

  save(): void {
    if (this.#no === undefined || this.sums === this.#loaded) return;
    const { spent, reserved } = this.sums;
    this.#statements.put.run(...valuesOf(spent), ...valuesOf(reserved), this.#no);
  }

  #touch({ no, touched }: CallerRow, now: number): void {
    this.#statements.touch.run(now, no);
    if (touched < now) return;
    // The wall clock was set back: rows with a later time must not count for longer than the window.
    for (const list of lists) this.#statements.lists[list].clampFuture.run(now, no, now);
  }
}

interface Place {
  /** The row number of the caller; undefined if it has no row. */
  readonly no: () => number | undefined;
  /** The row number; inserts a row if there is none. */
  readonly made: () => number;
}

class SqliteList implements TimedAmounts {
  /** Whether there may be more rows to remove. */
  hasMore = false;
  readonly #list: ListStatements;
  readonly #place: Place;
  readonly #mayStay: boolean;

  /** @param options `mayStay`: old rows may be removed at a later call */
  constructor(list: ListStatements, place: Place, options: { readonly mayStay?: boolean } = {}) {
    this.#list = list;
    this.#place = place;
    this.#mayStay = options.mayStay ?? false;
  }

  get(key: string): BudgetAmounts | undefined {
    const no = this.#place.no();
    return no === undefined ? undefined : (this.#list.get.get(no, key) as unknown as BudgetAmounts | undefined);
  }

  put(key: string, at: number, amounts: BudgetAmounts): void {
    this.#list.put.run(this.#place.made(), key, at, ...valuesOf(amounts));
  }

  remove(key: string): void {
    const no = this.#place.no();
    if (no !== undefined) this.#list.remove.run(no, key);
  }

  removeUntil(at: number): BudgetAmounts {
    const no = this.#place.no();
    if (no === undefined || this.#mayStay || this.#list.hasUntil.get(no, at) === undefined) return nothing;
    const removed = this.#list.removeUntil.all(no, no, at) as unknown as BudgetAmounts[];
    this.hasMore = removed.length === ROWS_AT_ONCE;
    return removed.reduce(add, nothing);
  }

  *oldest(): Iterable<{ readonly at: number; readonly amounts: BudgetAmounts }> {
    const no = this.#place.no();
    if (no === undefined) return;
    for (const { at, ...amounts } of this.#list.oldest.all(no)) {
      yield { at: Number(at), amounts: amounts as unknown as BudgetAmounts };
    }
  }
}

function valuesOf({ tokens, usd, seconds }: BudgetAmounts): [number, number, number] {
  return [tokens, usd, seconds];
}

function standingOf({ tokens, usd, seconds, held_tokens, held_usd, held_seconds }: CallerRow): StandingAmounts {
  return {
    spent: { tokens, usd, seconds },
    reserved: { tokens: held_tokens, usd: held_usd, seconds: held_seconds },
  };
}
