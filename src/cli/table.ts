/** Rows as lines, their columns one below the other. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) => longest(rows, column));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

function longest(rows: readonly (readonly string[])[], column: number): number {
  return rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0);
}
