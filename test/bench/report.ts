import { cpus } from 'node:os';

/** One line of the table: a figure, what it is allowed to be, and what that figure was made of. */
export interface Row {
  readonly what: string;
  /** NaN if it was not counted. */
  readonly value: number;
  readonly unit: 'x' | 'ms' | 's' | 'KB' | 'MB' | 'steps/s' | 'runs' | '%';
  /** Absent: the figure explains others, and has no bound. */
  readonly budget?: number;
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

/** What one run of the bench gives, also as JSON. */
export interface Report {
  readonly machine: string;
  /** When the run began, ISO 8601. */
  readonly begunAt: string;
  readonly isQuick: boolean;
  readonly parts: readonly (Part & { readonly title: string })[];
}

export function machine(): string {
  const [first] = cpus();
  return `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cpus().length} x ${first?.model ?? 'CPU'}`;
}

export function isWithin({ value, budget, isFloor = false }: Row): boolean {
  if (budget === undefined) return true;
  return isFloor ? value >= budget : value <= budget;
}

/** Reads what `JSON.stringify` made of a report: a figure that was not counted is null there. */
export function storedReport(text: string): Report {
  const revived = (key: string, value: unknown) => (key === 'value' && value === null ? Number.NaN : value);
  const report = JSON.parse(text, revived) as Partial<Report> | null;
  if (!Array.isArray(report?.parts) || typeof report.machine !== 'string') {
    throw new Error('it is no report of the bench');
  }
  return report as Report;
}

/** One row, as each of several runs of the bench has measured it. */
type Line = readonly [Row, ...Row[]];

/** The parts of all reports, and in each the rows of all, in the order of their first report. */
function merged(reports: readonly Report[]): ReadonlyMap<string, readonly Line[]> {
  const titles = new Map<string, Map<string, [Row, ...Row[]]>>();
  for (const { title, rows } of reports.flatMap(({ parts }) => parts)) {
    const lines = titles.get(title) ?? new Map<string, [Row, ...Row[]]>();
    titles.set(title, lines);
    for (const row of rows) {
      const line = lines.get(row.what);
      if (line) line.push(row);
      else lines.set(row.what, [row]);
    }
  }
  return new Map([...titles].map(([title, lines]) => [title, [...lines.values()]]));
}

/** The cells of a line: what, measured, budget, verdict, made of. */
function cellsOf(line: Line): readonly string[] {
  const [first] = line;
  const measured = listed(line.map(({ value, unit }) => amount(value, unit)));
  const budget =
    first.budget === undefined ? '' : `${first.isFloor ? 'at least ' : ''}${amount(first.budget, first.unit)}`;
  const notes = new Set(line.map(({ note }) => note));
  return [first.what, measured, budget, verdict(line), [...notes].join(' / ')];
}

/** Several words as a list: `a, b and c`. */
function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** Of several measurements of one row: within its budget only if each is. */
function verdict(line: Line): string {
  const counted = line.filter(({ value }) => !Number.isNaN(value));
  if (counted.length === 0) return 'not counted';
  if (line[0].budget === undefined) return '';
  if (counted.every(isWithin)) return 'within';
  return line[0].isFloor ? 'under' : 'over';
}

const roughly =
  'Quick figures are rough: few rounds, and not all parts. Run the whole bench before you decide anything.';
const headings = ['what', 'measured', 'budget', '', 'made of'];

/** The machine, the times, and how far the figures can be trusted. */
function introduction(reports: readonly Report[]): readonly string[] {
  const machines = [...new Set(reports.map(({ machine }) => machine))];
  const times = listed(reports.map(({ begunAt }) => begunAt));
  return [...machines, `Begun at ${times}`, ...(reports.some(({ isQuick }) => isQuick) ? [roughly] : [])];
}

/** The figures as a table for a terminal. */
export function tableOf(reports: readonly Report[]): string {
  const parts = [...merged(reports)].map(([title, lines]) => ({ title, cells: lines.map(cellsOf) }));
  const all = [headings, ...parts.flatMap(({ cells }) => cells)];
  const widths = headings.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => {
    return cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  };
  const tables = parts.flatMap(({ title, cells }) => ['', title, ...cells.map(line)]);
  return [...introduction(reports), '', line(headings), ...tables, ...brokenLines(reports)].join('\n');
}

/** The figures as docs/speed.md has them. */
export function markdownOf(reports: readonly Report[]): string {
  const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const tables = [...merged(reports)].flatMap(([title, lines]) => {
    const rows = lines.map(cellsOf).map((cells) => row(cells.map((cell, i) => (i === 3 ? emphasized(cell) : cell))));
    return ['', `## ${title}`, '', row(headings), '| --- | --- | --- | --- | --- |', ...rows];
  });
  return [introduction(reports).join('. '), ...tables, ...brokenLines(reports)].join('\n');
}

const emphasized = (verdict: string) => (verdict === 'over' || verdict === 'under' ? `**${verdict}**` : verdict);

function brokenLines(reports: readonly Report[]): readonly string[] {
  const all = reports.flatMap(({ parts }) => parts).flatMap(({ broken }) => broken);
  return all.flatMap(({ promise, seen }) => ['', `BROKEN PROMISE: ${promise}: ${seen}`]);
}

export function amount(value: number, unit: Row['unit']): string {
  if (Number.isNaN(value)) return 'not counted';
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return unit === 'x' ? `${value.toFixed(digits)}x` : `${value.toFixed(digits)} ${unit}`;
}
