import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { Usage } from '../values/usage.ts';
import type { AuditedPhase, AuditedStep, AuditedTool } from './port.ts';

/** A run in the audit. Times are of the wall clock, ms. */
export interface AuditedRun {
  readonly runId: string;
  readonly parentRunId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly callerId: string;
  readonly channelId: string;
  readonly guildId: string;
  readonly modelTier: string;
  readonly prompt: string;
  readonly startedAt: number;
  /** When its last entry was written. */
  readonly seenAt: number;
  /** When it ended. */
  readonly endedAt?: number;
  /** `open`: it has not ended, or its process died; `interrupted`: its process left it for another one. */
  readonly status: RunStatus | 'open';
  /** How often a process continued it. */
  readonly resumes: number;
  /** Completed model turns. */
  readonly iterations: number;
  readonly usage: Usage;
  /** What its budget counted; absent without a budget. */
  readonly spend?: Spend;
  /** Working time, ms; 0 while it is open. */
  readonly elapsedMs: number;
  readonly saveErrors: number;
  /** How many of its entries were dropped. */
  readonly dropped: number;
}

/** A run with all its entries. */
export interface AuditedRunDetail extends AuditedRun {
  readonly inputs: JsonValue;
  /** The answer; of a run that did not succeed, its last text. '' while it is open. */
  readonly output: string;
  readonly error?: ErrorData;
  /** In order; a step that was repeated after a crash appears once, with its last entry. */
  readonly steps: readonly (AuditedStep & AuditedAt)[];
  readonly tools: readonly (AuditedTool & AuditedAt)[];
  readonly phases: readonly (AuditedPhase & AuditedAt)[];
  readonly events: readonly (AuditedAt & { readonly type: string; readonly fields: JsonObject })[];
  /** The run has more entries than requested. */
  readonly isCut: boolean;
}

export interface AuditedAt {
  /** Wall clock, ms. */
  readonly at: number;
}

/** A run with its child runs. */
export interface AuditedTree {
  readonly run: AuditedRun;
  /** Ordered by their start. */
  readonly children: readonly AuditedTree[];
}

/** Which runs to list. */
export interface AuditedRunFilter {
  readonly callerId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly parentRunId?: string | undefined;
  readonly status?: AuditedRun['status'] | undefined;
  /** Started at this time or later, wall clock, ms. */
  readonly since?: number | undefined;
  /** Started before this time. */
  readonly until?: number | undefined;
  /** Default 100, at most 10,000. */
  readonly limit?: number | undefined;
  /** The last run of the page before. */
  readonly after?: Pick<AuditedRun, 'startedAt' | 'runId'> | undefined;
}

export interface AuditTotalsFilter {
  /** `day`: the UTC day on which each run started. */
  readonly by: 'day' | 'agent' | 'caller';
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Default 1,000, at most 10,000: the latest days, or the agents or callers with the most tokens. */
  readonly limit?: number | undefined;
}

/** The totals of the runs of one day, agent or caller. */
export interface AuditTotal {
  /** `2026-11-22`, or the id of the agent or caller. */
  readonly key: string;
  readonly runs: number;
  /** The number of runs by status; runs that have not ended are `open` or `interrupted`. */
  readonly statuses: { readonly [status in AuditedRun['status']]?: number };
  readonly usage: Usage;
  readonly spend: Spend;
  readonly iterations: number;
  readonly elapsedMs: number;
}

/** The queries of an audit. Each waits until earlier entries are written. */
export interface AuditQueries {
  /** Lists runs, the latest first. */
  runs(filter?: AuditedRunFilter): Promise<AuditedRun[]>;
  /** Returns one run, or null if it is not known. @param options `limit`: how many entries, default 10,000 */
  run(runId: string, options?: { readonly limit?: number }): Promise<AuditedRunDetail | null>;
  /** A run with its children, their children, and so on. @param options `depth`: default 8; `limit`: of runs, default 1,000 */
  tree(runId: string, options?: { readonly depth?: number; readonly limit?: number }): Promise<AuditedTree | null>;
  /** Sums. Days are ordered by date, agents and callers by their tokens. */
  totals(filter: AuditTotalsFilter): Promise<AuditTotal[]>;
}
