import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { Usage } from '../values/usage.ts';
import type { AuditedPhase, AuditedStep, AuditedTool } from './port.ts';

/** A run as an audit knows it. Times are of the wall clock, ms. */
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
  /** When something was last written of it. */
  readonly seenAt: number;
  /** When it ended for good. */
  readonly endedAt?: number;
  /** `open`: it has not ended, or its process died; `interrupted`: its process left it for the next one. */
  readonly status: RunStatus | 'open';
  /** How often another process took it up. */
  readonly resumes: number;
  /** Finished model turns. */
  readonly iterations: number;
  readonly usage: Usage;
  /** What its budget counted; absent without one. */
  readonly spend?: Spend;
  /** Working time, ms; 0 while it is open. */
  readonly elapsedMs: number;
  readonly saveErrors: number;
  /** What should have been written of it and could not be. */
  readonly dropped: number;
}

/** A run with all that was written of it. */
export interface AuditedRunDetail extends AuditedRun {
  readonly inputs: JsonValue;
  /** The answer; of a run that did not succeed, the last text it had. '' while it is open. */
  readonly output: string;
  readonly error?: ErrorData;
  /** In order; a step that was made again after a crash stands there once, as it was made last. */
  readonly steps: readonly (AuditedStep & AuditedAt)[];
  readonly tools: readonly (AuditedTool & AuditedAt)[];
  readonly phases: readonly (AuditedPhase & AuditedAt)[];
  readonly events: readonly (AuditedAt & { readonly type: string; readonly fields: JsonObject })[];
  /** There is more than was asked for. */
  readonly isCut: boolean;
}

export interface AuditedAt {
  /** Wall clock, ms. */
  readonly at: number;
}

/** A run with the runs it began. */
export interface AuditedTree {
  readonly run: AuditedRun;
  /** In the order in which they began. */
  readonly children: readonly AuditedTree[];
}

/** Which runs to list. */
export interface AuditedRunFilter {
  readonly callerId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly parentRunId?: string | undefined;
  readonly status?: AuditedRun['status'] | undefined;
  /** Begun at this time or later, wall clock, ms. */
  readonly since?: number | undefined;
  /** Begun before this time. */
  readonly until?: number | undefined;
  /** Default 100, at most 10,000. */
  readonly limit?: number | undefined;
  /** The last run of the page before. */
  readonly after?: Pick<AuditedRun, 'startedAt' | 'runId'> | undefined;
}

export interface AuditTotalsFilter {
  /** `day`: of the beginning of each run, in UTC. */
  readonly by: 'day' | 'agent' | 'caller';
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Default 1,000, at most 10,000: the latest days, or those who used most tokens. */
  readonly limit?: number | undefined;
}

/** What the runs of one day, agent or caller came to. */
export interface AuditTotal {
  /** `2026-11-22`, or the id of the agent or caller. */
  readonly key: string;
  readonly runs: number;
  /** How many runs ended how; runs that have not ended are `open` or `interrupted`. */
  readonly statuses: { readonly [status in AuditedRun['status']]?: number };
  readonly usage: Usage;
  readonly spend: Spend;
  readonly iterations: number;
  readonly elapsedMs: number;
}

/** What can be asked of an audit. All of it is read after what was recorded before. */
export interface AuditQueries {
  /** Runs, the latest first. */
  runs(filter?: AuditedRunFilter): Promise<AuditedRun[]>;
  /** One run; null when nothing is known of it. @param options `limit`: how many entries, default 10,000 */
  run(runId: string, options?: { readonly limit?: number }): Promise<AuditedRunDetail | null>;
  /** A run with its children, theirs, and so on. @param options `depth`: default 8; `limit`: of runs, default 1,000 */
  tree(runId: string, options?: { readonly depth?: number; readonly limit?: number }): Promise<AuditedTree | null>;
  /** Sums. Days come in their order, agents and callers by the tokens they used. */
  totals(filter: AuditTotalsFilter): Promise<AuditTotal[]>;
}
