/** `long`: a text of any length. */
type ColumnType = 'text' | 'bigint' | 'numeric' | 'float8' | 'long';
type Columns = Readonly<Record<string, ColumnType>>;
type RowOf<C extends Columns> = Readonly<Record<keyof C, string | number | null | undefined>>;

/** Collects the parameters of an SQL statement, numbered in order. */
export class Parameters {
  readonly values: unknown[] = [];

  /** Adds a parameter to a statement. @returns its name in the statement */
  add(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  /**
   * Rows as a table that a statement can select from, one parameter for each column. A long text is a parameter of its own:
   * inside an array it would have to be escaped. Long texts are filled up to a power of two, so that a server which keeps
   * statistics about statements sees few different ones; the added rows have no first column.
   */
  table<const C extends Columns>(columns: C, rows: readonly RowOf<C>[]): string {
    const arrays = Object.entries(columns).map(([name, type]) => {
      const values = rows.map((row) => row[name] ?? null);
      return type === 'long' ? this.#longTexts(values) : `${this.add(values)}::${type}[]`;
    });
    return `ROWS FROM (${arrays.map((array) => `pg_catalog.unnest(${array})`).join(', ')}) AS t (${Object.keys(columns).join(', ')})`;
  }

  #longTexts(values: readonly unknown[]): string {
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, values.length)));
    const names = Array.from({ length: size }, (_, i) => this.add(values[i] ?? null));
    return `ARRAY[${names.join(', ')}]::pg_catalog.text[]`;
  }
}

/** PostgreSQL truncates longer names: two of them could become one. */
const MAX_NAME_BYTES = 63;

/**
 * Returns the name of a schema of PostgreSQL, quoted.
 * @throws {TypeError} if PostgreSQL cannot have a schema of this name
 */
export function quotedSchema(name: string): string {
  const isFine = typeof name === 'string' && name !== '' && name.isWellFormed() && !name.includes('\0');
  if (!isFine || Buffer.byteLength(name) > MAX_NAME_BYTES || /^pg_|^information_schema$/i.test(name)) {
    throw new TypeError(
      `schema must be a name of 1 to ${MAX_NAME_BYTES} bytes that PostgreSQL does not reserve, not ${JSON.stringify(name)}`,
    );
  }
  return `"${name.replaceAll('"', '""')}"`;
}
