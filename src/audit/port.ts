import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { ToolEffect } from '../run/open-step.ts';
import type { RunInfo } from '../run/request.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { ToolOutput } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** A finished model turn with its tool calls. */
export interface AuditedStep {
  /** Counts from 1 over the whole life of the run. */
  readonly step: number;
  /** Of the run so far, this step included. */
  readonly usage: Usage;
  /** Names of the tools that it called. */
  readonly tools: readonly string[];
}

/** A tool call that was answered. */
export interface AuditedTool {
  readonly step: number;
  readonly callId: string;
  readonly name: string;
  readonly effect: ToolEffect;
  readonly attempt: number;
  readonly input: JsonValue;
  readonly output: ToolOutput;
  readonly ms: number;
  /** Nobody waited for it any more: it is not part of the run. */
  readonly isLate?: true;
}

/** A phase of a pipeline begins or ends. */
export interface AuditedPhase {
  readonly index: number;
  readonly name: string;
  readonly state: 'started' | 'done' | 'skipped';
  /** Of a phase that is done. */
  readonly output?: string;
}

/** What a run came to, over all processes that worked on it. */
export interface AuditTotals {
  readonly usage: Usage;
  readonly iterations: number;
  /** Working time, ms. */
  readonly elapsedMs: number;
  readonly saveErrors: number;
  readonly spend?: Spend;
}

/** Takes down one run in one process. Nothing it throws, and nothing it takes too long for, touches the run. */
export interface AuditRecorder {
  onStep?(step: AuditedStep): void;
  onTool?(call: AuditedTool): void;
  onPhase?(phase: AuditedPhase): void;
  /** Whatever else happened: `checkpoint.saved`, `checkpoint.failed`, `model.retry`, `run.resumed`, `run.parked`, … */
  logEvent?(type: string, fields: JsonObject): void;
  /** The last call, made exactly once. `interrupted`: another process goes on, with a recorder of its own. */
  close(status: RunStatus, output: string, error: ErrorData | undefined, totals: AuditTotals): Promise<void> | void;
}

/** Remembers runs after their records are gone. */
export interface Audit {
  /** A run begins, or goes on, in this process. */
  startRun(info: RunInfo): AuditRecorder;
}
