import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { ToolEffect } from '../run/open-step.ts';
import type { RunInfo } from '../run/request.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { ToolOutput } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** A completed model turn with its tool calls. */
export interface AuditedStep {
  /** Counts from 1 over the whole life of the run. */
  readonly step: number;
  /** The usage of the run so far, this step included. */
  readonly usage: Usage;
  /** The names of the called tools. */
  readonly tools: readonly string[];
  /** The model that answered: `provider/modelId`; absent for a step of a workflow. */
  readonly model?: string;
}

/** A tool call that has a result. */
export interface AuditedTool {
  readonly step: number;
  readonly callId: string;
  readonly name: string;
  readonly effect: ToolEffect;
  readonly attempt: number;
  readonly input: JsonValue;
  readonly output: ToolOutput;
  readonly ms: number;
  /** The result came too late: it is not part of the run. */
  readonly isLate?: true;
}

/** A phase of a pipeline begins or ends. */
export interface AuditedPhase {
  readonly index: number;
  readonly name: string;
  readonly state: 'started' | 'done' | 'skipped';
  /** The output, if the phase is done. */
  readonly output?: string;
}

/** The totals of a run, over all processes that worked on it. */
export interface AuditTotals {
  readonly usage: Usage;
  readonly iterations: number;
  /** Working time, ms. */
  readonly elapsedMs: number;
  readonly saveErrors: number;
  readonly spend?: Spend;
}

/** Records one run in one process. If it throws or is too slow, the run continues unchanged. */
export interface AuditRecorder {
  onStep?(step: AuditedStep): void;
  onTool?(call: AuditedTool): void;
  onPhase?(phase: AuditedPhase): void;
  /** Records other events: `checkpoint.saved`, `checkpoint.failed`, `model.retry`, `run.resumed`, `run.parked`, … */
  logEvent?(type: string, fields: JsonObject): void;
  /** The last call, made exactly once. `interrupted`: another process continues the run with its own recorder. */
  close(status: RunStatus, output: string, error: ErrorData | undefined, totals: AuditTotals): Promise<void> | void;
}

/** Records runs, so that they can be read after the runs' records are deleted. */
export interface Audit {
  /** A run starts or continues in this process. */
  startRun(info: RunInfo): AuditRecorder;
}
