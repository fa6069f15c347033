import type { RunLine, RunState } from '../../wire.ts';
import { short, usd, whole } from '../parts/amounts.ts';

/** What the list is narrowed to; it is part of the address. */
export interface Filter {
  readonly states: readonly RunState[];
  /** As typed: a text, or `label:name=value`. */
  readonly text: string;
  /** Only runs that ended from then on, and before: wall clock, ms. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** The groups of the list, in the order in which a person wants to see them. */
const groups: readonly (readonly [name: string, ...states: RunState[]])[] = [
  ['Needs you', 'you'],
  ['Running', 'run'],
  ['Waiting for time or an event', 'wait'],
  ['No process works on it', 'idle', 'park', 'bad'],
  ['Ended', 'ok', 'fail', 'cut'],
];

/** A row of the list: the head of a group, or a run. */
export type RunRow =
  | { readonly group: string; readonly count: number; readonly line?: undefined }
  | {
      readonly line: RunLine;
      readonly group?: undefined;
      /** The run above it, under which it is unfolded. */
      readonly below?: string;
    };

/** The most rows that a tab keeps. */
export const MAX_LINES = 300;

/** Returns the lines with those that have changed; the newest of what is too much is kept. */
export function merged(
  lines: ReadonlyMap<string, RunLine>,
  changed: readonly RunLine[],
): { readonly lines: ReadonlyMap<string, RunLine>; readonly fresh: readonly RunLine[] } {
  const next = new Map(lines);
  const fresh: RunLine[] = [];
  for (const line of changed) {
    if (next.has(line.runId)) next.set(line.runId, line);
    else fresh.push(line);
  }
  return { lines: next, fresh };
}

function isOpen({ state }: RunLine): boolean {
  return state !== 'ok' && state !== 'fail' && state !== 'cut';
}

/** Returns the newest lines, as many as a tab keeps. */
export function bounded(lines: ReadonlyMap<string, RunLine>): ReadonlyMap<string, RunLine> {
  if (lines.size <= MAX_LINES) return lines;
  const kept = [...lines.values()].toSorted(
    (a, b) => Number(isOpen(b)) - Number(isOpen(a)) || (b.updatedAt ?? Infinity) - (a.updatedAt ?? Infinity),
  );
  return new Map(kept.slice(0, MAX_LINES).map((line) => [line.runId, line]));
}

/** Returns whether a line fits the filter. */
export function fits(line: RunLine, { states, text, since, until }: Filter): boolean {
  if (states.length > 0 && !states.includes(line.state)) return false;
  const endedAt = isOpen(line) ? NaN : (line.updatedAt ?? NaN);
  if ((since ?? until) && !(endedAt >= (since ?? 0) && endedAt < (until ?? Infinity))) return false;
  const { label, rest } = labelIn(text);
  if (label && line.labels[label[0]] !== label[1]) return false;
  const wanted = rest.toLowerCase();
  return [line.runId, line.agentName, line.prompt].some((each) => each.toLowerCase().includes(wanted));
}

/** Reads `label:name=value` in a filter. */
export function labelIn(text: string): { readonly label?: readonly [string, string]; readonly rest: string } {
  const words = text.split(' ');
  const at = words.findIndex((word) => word.startsWith('label:') && word.indexOf('=') > 'label:'.length);
  const word = words[at];
  if (word === undefined) return { rest: text.trim() };
  const equals = word.indexOf('=');
  const label = [word.slice('label:'.length, equals), word.slice(equals + 1)] as const;
  return { label, rest: words.toSpliced(at, 1).join(' ').trim() };
}

/** What the lines of a list come to: `300 runs and more · 1.2M tokens · $3.4000`. */
export function totalsOf(lines: readonly RunLine[], isMore: boolean): string {
  const tokens = lines.reduce((sum, line) => sum + line.tokens, 0);
  const paid = lines.flatMap((line) => line.usd ?? []);
  return [
    `${lines.length === 1 ? '1 run' : `${whole(lines.length)} runs`}${isMore ? ' and more' : ''}`,
    ...(tokens > 0 ? [`${short(tokens)} tokens`] : []),
    ...(paid.length > 0 ? [`$${usd(paid.reduce((sum, each) => sum + each, 0))}`] : []),
  ].join(' · ');
}

/** Returns the rows of a list: each group that has runs, the newest first. */
export function rowsOfRuns(lines: Iterable<RunLine>, filter: Filter): readonly RunRow[] {
  const fitting = [...lines].filter((line) => fits(line, filter));
  return groups.flatMap(([group, ...states]) => {
    const own = fitting
      .filter(({ state }) => states.includes(state))
      .toSorted((a, b) => (b.updatedAt ?? Infinity) - (a.updatedAt ?? Infinity) || (a.runId < b.runId ? -1 : 1));
    return own.length === 0 ? [] : [{ group, count: own.length }, ...own.map((line): RunRow => ({ line }))];
  });
}

/** Returns the rows with the runs below those that are unfolded. */
export function unfolded(
  rows: readonly RunRow[],
  children: ReadonlyMap<string, readonly RunLine[]>,
): readonly RunRow[] {
  if (children.size === 0) return rows;
  return rows.flatMap((row) => {
    const below = row.line ? (children.get(row.line.runId) ?? []) : [];
    return [row, ...below.map((line): RunRow => ({ line, below: row.line?.runId ?? '' }))];
  });
}

/** Returns the rows as they were, with the newest line of each run: nothing moves under the pointer. */
export function held(rows: readonly RunRow[], lines: ReadonlyMap<string, RunLine>): readonly RunRow[] {
  return rows.map((row) => (row.line ? { ...row, line: lines.get(row.line.runId) ?? row.line } : row));
}
