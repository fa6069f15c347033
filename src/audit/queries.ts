import type { RunStatus } from '../run/finalize.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { Spend, Usage } from '../values/usage.ts';
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
  /** In a list the first 200 characters. */
  readonly prompt: string;
  readonly startedAt: number;
  /** When it ended. */
  readonly endedAt?: number;
  /** `open`: it has not ended. */
  readonly status: RunStatus | 'open';
  /** Completed model turns. */
  readonly iterations: number;
  readonly usage: Usage;
  /** What its budget counted; absent without a budget. */
  readonly spend?: Spend;
  /** Working time, ms. */
  readonly elapsedMs: number;
}

/** A run with its events. */
export interface AuditedRunDetail extends AuditedRun {
  readonly inputs: JsonValue;
  /** The answer; of a run that did not succeed, its last text. '' while it is open. */
  readonly output: string;
  readonly error?: ErrorData;
  /** In order. */
  readonly steps: readonly (AuditedStep & AuditedAt)[];
  readonly tools: readonly (AuditedTool & AuditedAt)[];
  readonly phases: readonly (AuditedPhase & AuditedAt)[];
  readonly events: readonly (AuditedAt & { readonly type: string; readonly fields: JsonObject })[];
  /** The run has more events than requested. */
  readonly isCut: boolean;
}

export interface AuditedAt {
  /** Wall clock, ms. */
  readonly at: number;
}

/** A run with its child runs. */
export interface AuditedTree {
  readonly run: AuditedRun;
  /** In the order of the calls that began them. */
  readonly children: readonly AuditedTree[];
}

/** Which runs to list. */
export interface AuditedRunFilter {
  readonly callerId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly parentRunId?: string | undefined;
  readonly status?: RunStatus | undefined;
  /** Started at this time or later, wall clock, ms. */
  readonly since?: number | undefined;
  /** Started before this time. */
  readonly until?: number | undefined;
  /** Default 100, at most 10,000. */
  readonly limit?: number | undefined;
  /** The last run of the page before. */
  readonly after?: Pick<AuditedRun, 'endedAt' | 'runId'> | undefined;
}

export interface AuditTotalsFilter {
  /** `day`: the UTC day on which each run started. */
  readonly by: 'day' | 'agent' | 'caller';
  /** Started at this time or later, wall clock, ms; with `day`, from the day of this time on. */
  readonly since?: number | undefined;
  /** Started before this time; with `day`, up to the day before which it ends. */
  readonly until?: number | undefined;
  /** Default 1,000, at most 10,000: the latest days, or the agents or callers with the most tokens. */
  readonly limit?: number | undefined;
}

/** The totals of the ended runs of one day, agent or caller. */
export interface AuditTotal {
  /** `2026-11-22`, or the id of the agent or caller. */
  readonly key: string;
  readonly runs: number;
  /** The number of runs by status. */
  readonly statuses: { readonly [status in RunStatus]?: number };
  readonly usage: Usage;
  readonly spend: Spend;
  readonly iterations: number;
  readonly elapsedMs: number;
}

/** The queries of an audit. They read the store of the runs, and change nothing. */
export interface AuditQueries {
  /** Lists the kept runs that ended, the latest end first. */
  runs(filter?: AuditedRunFilter): Promise<AuditedRun[]>;
  /** Returns one run, also one that has not ended, or null if no record of it is kept. @param options `limit`: how many events, default 10,000 */
  run(runId: string, options?: { readonly limit?: number }): Promise<AuditedRunDetail | null>;
  /** A run with the runs that its calls began, their children, and so on. @param options `depth`: default 8; `limit`: of runs, default 1,000 */
  tree(runId: string, options?: { readonly depth?: number; readonly limit?: number }): Promise<AuditedTree | null>;
  /**
   * Sums. Days are ordered by date, and count all runs that ended while the audit was on, also those that are erased. Agents and
   * callers are ordered by their tokens, and count the runs that are kept.
   */
  totals(filter: AuditTotalsFilter): Promise<AuditTotal[]>;
}
