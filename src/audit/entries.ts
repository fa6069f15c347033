import type { Spend } from '../budget/port.ts';
import type { RunStatus } from '../run/finalize.ts';
import type { Usage } from '../values/usage.ts';

/** A run in one process; its entries refer to it. */
export interface RunHandle {
  /** The row of the run in the file, once it has one. */
  place: Place | undefined;
  /** How many of its entries were dropped. */
  dropped: number;
}

export interface Place {
  readonly no: number;
  /** How often a process had continued it by then: tells this process from a later one. */
  readonly resumes: number;
  /** A run with this id has ended before: the next entry decides whether it is the same run or a new one. */
  readonly hasEnded: boolean;
  /** How many dropped entries are already written. */
  readonly dropped: number;
}

/** The row of a run that starts. Texts are clipped, `inputs` is JSON. */
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

/** One entry to write. `at`: wall clock, ms. */
export type Entry =
  | { readonly type: 'begin'; readonly at: number; readonly row: RunRow }
  | {
      readonly type: 'step' | 'tool' | 'phase' | 'event';
      readonly at: number;
      /** JSON. */
      readonly text: string;
      /** The progress of the run with this entry. */
      readonly progress?: { readonly step: number; readonly usage: Usage };
      /** This is a new run, even if the file has an earlier one with its id. */
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

/** An entry in the queue. */
export interface QueuedEntry {
  readonly run: RunHandle;
  readonly entry: Entry;
  /** Needed if the file has an ended run with this id. */
  readonly row: RunRow;
  /** The characters of its texts. */
  readonly size: number;
}

/** Returns the approximate size of an audit entry, in characters, for the bound of the queue. */
export function sizeOf(entry: Entry): number {
  if (entry.type === 'begin') return entry.row.prompt.length + entry.row.inputs.length;
  return entry.type === 'close' ? entry.output.length + (entry.error?.length ?? 0) : entry.text.length;
}
