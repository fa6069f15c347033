/** How much of one kind a store holds. */
export interface StoredRows {
  /** `records` are those of live and of ended runs, `events` the journals, `audit` the totals of days. */
  readonly kind: 'records' | 'outcomes' | 'events' | 'signals' | 'threads' | 'audit';
  readonly rows: number;
  /** On the disk, with indexes and free space in their pages; absent: this SQLite cannot say. */
  readonly bytes?: number;
  /** When the oldest was written, wall clock, ms; absent: it is not kept, or there is none. */
  readonly oldestAt?: number;
  /** When the first of them is past its time, wall clock, ms; absent: none has one. */
  readonly firstUntil?: number;
  /** How many are past their time: the next prune removes them. */
  readonly expired: number;
}

/** A store that says what fills it. */
export interface StoredRowsReader {
  /** Counts what the store holds, by kind. It reads whole tables: it is for a person, not for a probe. */
  storedRows(): Promise<readonly StoredRows[]>;
}

/** Where a database has one kind. */
export interface KindTables {
  readonly kind: StoredRows['kind'];
  /** The tables whose rows are counted, with the SQL of the time of a row, and a condition. */
  readonly counted: readonly { readonly table: string; readonly at?: string; readonly where?: string }[];
  /** The table and the column that say until when a row is kept. */
  readonly kept?: { readonly table: string; readonly until: string };
  /** All its tables. */
  readonly tables: readonly string[];
}

/** The columns of the row that `rowsQuery` reads. A driver may give numbers as texts. */
export interface RowsRow {
  readonly rows: number | string | null;
  readonly oldest: number | string | null;
  readonly first: number | string | null;
  readonly expired: number | string | null;
  readonly bytes: number | string | null;
}

/**
 * Returns the statement that counts one kind.
 * @param how.now SQL of the time of the store, ms
 * @param how.bytes SQL of the size of its tables
 * @param how.prefix before the name of a function
 */
export function rowsQuery(
  { counted, kept }: KindTables,
  { now, bytes, prefix = '' }: { readonly now: string; readonly bytes: string; readonly prefix?: string },
): string {
  const counts = counted.map(
    ({ table, at = 'NULL', where = 'true' }) =>
      `SELECT ${prefix}count(*) AS n, ${prefix}min(${at}) AS at FROM ${table} WHERE ${where}`,
  );
  const first = kept ? `(SELECT ${prefix}min(${kept.until}) FROM ${kept.table})` : 'NULL';
  const expired = kept ? `(SELECT ${prefix}count(*) FROM ${kept.table} WHERE ${kept.until} <= ${now})` : '0';
  return `SELECT ${prefix}sum(u.n) AS rows, ${prefix}min(u.at) AS oldest, ${first} AS first, ${expired} AS expired, ${bytes} AS bytes
    FROM (${counts.join(' UNION ALL ')}) u`;
}

/** Returns the counts of one kind as they were read. */
export function storedRowsOf(kind: StoredRows['kind'], { rows, oldest, first, expired, bytes }: RowsRow): StoredRows {
  const told = { bytes, oldestAt: oldest, firstUntil: first };
  const known = Object.entries(told).filter(([, value]) => value !== null);
  const numbers = Object.fromEntries(known.map(([name, value]) => [name, Number(value)]));
  return { kind, rows: Number(rows ?? 0), ...numbers, expired: Number(expired ?? 0) };
}
