import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { Usage } from '../values/usage.ts';

/** A run in one process, as what is written of it refers to it. */
export interface RunHandle {
  /** Where it stands in the file, once it stands there. */
  place: Place | undefined;
  /** Entries of it that had to be dropped. */
  dropped: number;
}

export interface Place {
  readonly no: number;
  /** How often it had been taken up by then: tells this process from a later one. */
  readonly resumes: number;
  /** It had ended under this id: what comes next says whether it is that run again, or another one. */
  readonly hasEnded: boolean;
  /** How many dropped entries are written down. */
  readonly dropped: number;
}

/** What is kept of a run that begins. Texts are clipped, `inputs` is JSON. */
export interface RunRow {
  readonly runId: string;
  readonly parentRunId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly callerId: string;
  readonly channelId: string;
  readonly guildId: string;
  readonly modelTier: string;
  readonly prompt: string;
  readonly inputs: string;
  readonly startedAt: number;
}

/** One thing to be written. `at`: wall clock, ms. */
export type Entry =
  | { readonly type: 'begin'; readonly at: number; readonly row: RunRow }
  | {
      readonly type: 'step' | 'tool' | 'phase' | 'event';
      readonly at: number;
      /** JSON. */
      readonly text: string;
      /** How far the run is with it. */
      readonly progress?: { readonly step: number; readonly usage: Usage };
      /** The run is a new one, whatever is known under its id. */
      readonly isNewRun?: boolean;
    }
  | {
      readonly type: 'close';
      readonly at: number;
      readonly status: RunStatus;
      readonly output: string;
      /** JSON. */
      readonly error: string | null;
      readonly usage: Usage;
      readonly iterations: number;
      readonly elapsedMs: number;
      readonly saveErrors: number;
      readonly spend: Spend | undefined;
    };

/** An entry in line to be written. */
export interface QueuedEntry {
  readonly run: RunHandle;
  readonly entry: Entry;
  /** For an entry of a run that may be found ended under its id. */
  readonly row: RunRow;
  /** Characters of its texts. */
  readonly size: number;
}

export function sizeOf(entry: Entry): number {
  if (entry.type === 'begin') return entry.row.prompt.length + entry.row.inputs.length;
  return entry.type === 'close' ? entry.output.length + (entry.error?.length ?? 0) : entry.text.length;
}
