import { cpus } from 'node:os';

/** One line of the table: a figure, what it is allowed to be, and what that figure was made of. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: 'x' | 'ms' | 'KB' | 'steps/s' | '%';
  readonly budget: number;
  /** Whether more is better. */
  readonly isFloor?: boolean;
  readonly note: string;
}

/** A promise that the measured work must have kept; a figure of work that broke it means nothing. */
export interface Broken {
  readonly promise: string;
  readonly seen: string;
}

/** What one part of the benchmark gives. */
export interface Part {
  readonly rows: readonly Row[];
  readonly broken: readonly Broken[];
}

export interface Report extends Part {
  readonly machine: string;
}

export function machine(): string {
  const [first] = cpus();
  return `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cpus().length} x ${first?.model ?? 'CPU'}`;
}

export function isWithin({ value, budget, isFloor = false }: Row): boolean {
  return isFloor ? value >= budget : value <= budget;
}

export function print({ machine, rows, broken }: Report): void {
  console.log(`\n${machine}\n`);
  const widths = [Math.max(...rows.map((row) => row.what.length)), 12, 12, 5];
  const line = (...cells: string[]) => console.log(cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  line('what', 'measured', 'budget', '', 'made of');
  for (const row of rows) {
    const sign = row.isFloor ? '>= ' : '<= ';
    line(row.what, amount(row.value, row.unit), sign + amount(row.budget, row.unit), verdict(row), row.note);
  }
  for (const { promise, seen } of broken) console.log(`\nBROKEN PROMISE: ${promise}: ${seen}`);
}

function verdict(row: Row): string {
  if (Number.isNaN(row.value)) return 'n/a';
  return isWithin(row) ? 'ok' : 'over';
}

export function amount(value: number, unit: Row['unit']): string {
  if (Number.isNaN(value)) return 'not counted';
  const digits = Math.abs(value) < 10 ? 2 : value < 100 ? 1 : 0;
  return unit === 'x' ? `${value.toFixed(digits)}x` : `${value.toFixed(digits)} ${unit}`;
}
