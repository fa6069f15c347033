import type { UsedByEnd } from '../run/attempt.ts';
import type { RunOutcome } from '../run/result.ts';
import type { Spend, Usage } from '../values/usage.ts';

/** The totals of the runs of one day that ended with one status. They stay when the runs are erased. */
export interface DayTotals {
  /** The UTC day on which the runs began: `2026-11-22`. */
  readonly day: string;
  readonly status: RunOutcome['status'];
  readonly runs: number;
  readonly usage: Usage;
  readonly spend: Spend;
  readonly iterations: number;
  /** Working time, ms. */
  readonly elapsedMs: number;
}

/** Which days are read, the first and the last one included. Absent: from the first, to the last. */
export interface TotalsRange {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The totals of a day and a status as a driver keeps them: a number for each of `totalColumns`. */
export interface TotalsRow {
  readonly day: string;
  readonly status: string;
  readonly sums: readonly number[];
}

/** The names of the numbers of a `TotalsRow`, in their order. Two rows of one day and status become one by adding them. */
export const totalColumns = [
  'runs',
  'input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'spent_tokens',
  'spent_usd',
  'spent_seconds',
  'iterations',
  'elapsed_ms',
] as const;

/**
 * Returns what the end of a run adds to the totals of its day.
 * @param before what an earlier end of the run has added: it was retried, and this end counts what came since
 */
export function totalsRowOf(
  { status, usage, spend, iterations, run, endedAt }: RunOutcome,
  before?: UsedByEnd | undefined,
): TotalsRow {
  const used = usedSums({ usage, iterations, elapsedMs: run?.elapsedMs ?? 0, ...(spend ? { spend } : {}) });
  const counted = before ? usedSums(before) : [];
  const sums = [1, ...used.map((sum, i) => sum - (counted[i] ?? 0))];
  return { day: dayOf(run?.beganAt ?? endedAt ?? 0), status, sums };
}

function usedSums({ usage, spend, iterations, elapsedMs }: UsedByEnd): number[] {
  const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const tokens = [inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens];
  return [...tokens, spend?.tokens ?? 0, spend?.usd ?? 0, spend?.seconds ?? 0, iterations, elapsedMs];
}

/** Returns the UTC day of a time of the wall clock, ms; empty if no calendar has it. */
export function dayOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 10);
}

/** Adds a row to those that a driver keeps in memory. */
export function addTotals(rows: Map<string, TotalsRow>, { day, status, sums }: TotalsRow): void {
  const key = `${day} ${status}`;
  const before = rows.get(key)?.sums ?? [];
  rows.set(key, { day, status, sums: sums.map((sum, i) => sum + (before[i] ?? 0)) });
}

/** Returns whether a day is in a range. */
export function isInRange(day: string, { from = '', to }: TotalsRange): boolean {
  return day >= from && (to === undefined || day <= to);
}

/** Returns the totals of a row as readers get them. */
export function dayTotalsOf({ day, status, sums }: TotalsRow): DayTotals {
  const [runs = 0, inputTokens = 0, outputTokens = 0, reasoningTokens = 0, cacheReadTokens = 0] = sums;
  const [cacheWriteTokens = 0, tokens = 0, usd = 0, seconds = 0, iterations = 0, elapsedMs = 0] = sums.slice(5);
  return {
    day,
    status: status as DayTotals['status'],
    runs,
    usage: { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens },
    spend: { tokens, usd, seconds },
    iterations,
    elapsedMs,
  };
}
