import type { SQLInputValue } from 'node:sqlite';
import type { Usage } from '../values/usage.ts';
import type { AuditedRun, AuditedRunFilter, AuditTotal, AuditTotalsFilter } from './queries.ts';
import { ENTRIES_PER_RUN, type Statements } from './sqlite-layout.ts';

/** A row of `runs` with its row of `heads`. */
interface RunRow {
  readonly no: number;
  readonly run_id: string;
  readonly parent_run_id: string;
  readonly agent_id: string;
  readonly agent_name: string;
  readonly caller_id: string;
  readonly channel_id: string;
  readonly guild_id: string;
  readonly model_tier: string;
  readonly started_at: number;
  readonly prompt: string;
  readonly inputs: string;
  readonly status: AuditedRun['status'];
  readonly seen_at: number;
  readonly ended_at: number | null;
  readonly resumes: number;
  readonly iterations: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly elapsed_ms: number;
  readonly save_errors: number;
  readonly dropped: number;
  readonly spent_tokens: number | null;
  readonly spent_usd: number | null;
  readonly spent_seconds: number | null;
}

export interface FoundRun {
  readonly no: number;
  readonly run: AuditedRun;
  /** JSON. */
  readonly inputs: string;
  readonly end: { readonly output: string; readonly error: string | null } | undefined;
}

export interface EntryRow {
  readonly id: number;
  readonly type: string;
  readonly at: number;
  /** JSON. */
  readonly fields: string;
}

/** The conditions of a query, with their values. */
class Conditions {
  readonly values: SQLInputValue[] = [];
  readonly #texts: string[] = [];

  add(text: string, ...values: readonly (SQLInputValue | undefined)[]): void {
    if (values.includes(undefined)) return;
    this.#texts.push(text);
    this.values.push(...(values as SQLInputValue[]));
  }

  get where(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`;
  }
}

/** Lists the audited runs of the SQLite file that a filter selects. */
export function listRuns({ db }: Statements, filter: AuditedRunFilter, limit: number): AuditedRun[] {
  const conditions = new Conditions();
  conditions.add('caller_id = ?', filter.callerId);
  conditions.add('agent_id = ?', filter.agentId);
  conditions.add('parent_run_id = ?', filter.parentRunId);
  conditions.add('status = ?', filter.status);
  conditions.add('started_at >= ?', filter.since);
  conditions.add('started_at < ?', filter.until);
  conditions.add('(started_at, run_id) < (?, ?)', filter.after?.startedAt, filter.after?.runId);
  const text = `SELECT * FROM runs JOIN heads USING (no) ${conditions.where} ORDER BY started_at DESC, run_id DESC LIMIT ?`;
  return db
    .prepare(text)
    .all(...conditions.values, limit)
    .map((row) => runOf(row as unknown as RunRow));
}

/** Finds an audited run in the SQLite file by its id. */
export function findRun({ db }: Statements, runId: string): FoundRun | undefined {
  const text = 'SELECT * FROM runs JOIN heads USING (no) WHERE run_id = ? ORDER BY no DESC LIMIT 1';
  const row = db.prepare(text).get(runId) as unknown as RunRow | undefined;
  if (!row) return undefined;
  const end = db.prepare('SELECT output, error FROM ends WHERE no = ?').get(row.no) as FoundRun['end'];
  return { no: row.no, run: runOf(row), inputs: row.inputs, end };
}

/**
 * Reads the audit entries of one run from the SQLite file, in order, a page at a time.
 * @param after the id of the last known entry; 0 = from the first
 */
export function readEntries({ db }: Statements, no: number, page: { after: number; limit: number }): EntryRow[] {
  const text = 'SELECT id, type, at, fields FROM entries WHERE id > ? AND id < ? ORDER BY id LIMIT ?';
  const first = Math.max(page.after, no * ENTRIES_PER_RUN);
  return db.prepare(text).all(first, (no + 1) * ENTRIES_PER_RUN, page.limit) as unknown as EntryRow[];
}

/** Lists the child runs of an audited run, ordered by their start. */
export function childrenOf({ db }: Statements, runId: string, limit: number): AuditedRun[] {
  const text = `SELECT * FROM runs JOIN heads USING (no) WHERE parent_run_id = ? AND parent_run_id <> ''
    ORDER BY started_at, no LIMIT ?`;
  return db
    .prepare(text)
    .all(runId, limit)
    .map((row) => runOf(row as unknown as RunRow));
}

const keys = {
  day: "coalesce(strftime('%Y-%m-%d', started_at / 1000, 'unixepoch'), '')",
  agent: 'agent_id',
  caller: 'caller_id',
} as const;

interface TotalRow {
  readonly key: string;
  readonly statuses: string;
  readonly runs: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly iterations: number;
  readonly elapsed_ms: number;
  readonly spent_tokens: number;
  readonly spent_usd: number;
  readonly spent_seconds: number;
}

/** Sums up the audited runs of the SQLite file by day, agent or caller: counts, tokens, costs. */
export function sumUp({ db }: Statements, { by, since, until }: AuditTotalsFilter, limit: number): AuditTotal[] {
  const conditions = new Conditions();
  conditions.add('started_at >= ?', since);
  conditions.add('started_at < ?', until);
  const sums = ['input_tokens', 'output_tokens', 'reasoning_tokens', 'cache_read_tokens', 'cache_write_tokens'];
  const others = ['iterations', 'elapsed_ms', 'spent_tokens', 'spent_usd', 'spent_seconds'];
  const columns = [...sums, ...others].map((column) => `total(${column}) AS ${column}`).join(', ');
  const order = by === 'day' ? 'key DESC' : 'total(input_tokens) + total(output_tokens) DESC, key';
  // Grouped twice, by key and status first, so that one query returns the sums and the number of runs by status.
  const text = `
    SELECT key, sum(runs) AS runs, json_group_object(status, runs) AS statuses, ${columns} FROM (
      SELECT ${keys[by]} AS key, status, count(*) AS runs, ${columns}
      FROM runs JOIN heads USING (no) ${conditions.where} GROUP BY key, status
    ) GROUP BY key ORDER BY ${order} LIMIT ?`;
  const rows = db.prepare(text).all(...conditions.values, limit) as unknown as TotalRow[];
  return (by === 'day' ? rows.reverse() : rows).map(totalOf);
}

function totalOf(row: TotalRow): AuditTotal {
  return {
    key: row.key,
    runs: row.runs,
    statuses: JSON.parse(row.statuses),
    usage: usageOf(row),
    spend: { tokens: row.spent_tokens, usd: row.spent_usd, seconds: row.spent_seconds },
    iterations: row.iterations,
    elapsedMs: row.elapsed_ms,
  };
}

function runOf(row: RunRow): AuditedRun {
  const { spent_tokens: tokens, spent_usd: usd, spent_seconds: seconds } = row;
  return {
    runId: row.run_id,
    parentRunId: row.parent_run_id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    callerId: row.caller_id,
    channelId: row.channel_id,
    guildId: row.guild_id,
    modelTier: row.model_tier,
    prompt: row.prompt,
    startedAt: row.started_at,
    seenAt: row.seen_at,
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    status: row.status,
    resumes: row.resumes,
    iterations: row.iterations,
    usage: usageOf(row),
    ...(tokens === null || usd === null || seconds === null ? {} : { spend: { tokens, usd, seconds } }),
    elapsedMs: row.elapsed_ms,
    saveErrors: row.save_errors,
    dropped: row.dropped,
  };
}

function usageOf(row: RunRow | TotalRow): Usage {
  return {
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    cacheReadTokens: row.cache_read_tokens,
    cacheWriteTokens: row.cache_write_tokens,
  };
}
