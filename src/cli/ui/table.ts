import { oneLine } from './control-characters.ts';

/** Formats rows of texts as lines with aligned columns. */
export function table(texts: readonly (readonly string[])[]): string[] {
  const rows = texts.map((row) => row.map(oneLine));
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) => longest(rows, column));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd());
}

function longest(rows: readonly (readonly string[])[], column: number): number {
  return rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0);
}

/** Returns a line `name  value` of a description, with the names aligned. */
export function field(name: string, value: string): string {
  return `${name.padEnd(10)}${oneLine(value)}`;
}
