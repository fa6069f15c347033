// What the routes of fan-outs answer with: the server writes these forms, and the page reads them.
import type { RunState } from '../http/runs/run-line.ts';
import type { Person } from '../index.ts';

/** A fan-out in the list of `GET /fan-outs`. */
export interface FanOutLine {
  readonly id: string;
  /** Its file, below the folder of fan-outs. */
  readonly name: string;
  /** Its first 200 characters. */
  readonly prompt: string;
  /** `run`: a process works on it. `idle`: models have no answer, and no process works. `ok`: all are done. `bad`: it cannot be read. */
  readonly state: RunState;
  readonly models: number;
  readonly answered: number;
  /** Wall clock of the last save, ms. */
  readonly updatedAt: number;
  /** Why it cannot be read. */
  readonly code?: string;
}

/** The answer of `GET /fan-outs`. */
export interface FanOutList {
  readonly items: readonly FanOutLine[];
  /** Where fan-outs are looked for. */
  readonly folder: string;
  /** Whether the folder has more than were looked at. */
  readonly isPartial: boolean;
}

/** A line of a diff; `at` is the head of a part: `@@ -1,4 +1,5 @@`. */
export interface DiffLine {
  readonly kind: 'same' | 'add' | 'del' | 'at';
  readonly text: string;
}

/** What an answer proposes for one file. */
export interface ProposedFile {
  readonly path: string;
  readonly change: 'created' | 'changed' | 'deleted';
  /** Other programs execute or obey the file by themselves: how. */
  readonly warning?: string;
  readonly added: number;
  readonly removed: number;
  readonly lines: readonly DiffLine[];
  /** How many lines of the diff are not shown. */
  readonly more: number;
}

/** One model of a fan-out. */
export interface FanOutAnswer {
  readonly modelId: string;
  readonly state: RunState;
  /** Why it stopped; '' while it works. */
  readonly stopReason: string;
  readonly latencyMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  readonly steps: number;
  /** Its place in the ranking, from 1. */
  readonly rank?: number;
  readonly text: string;
  /** How many characters of the text are not shown. */
  readonly more: number;
  readonly error?: string;
  readonly files: readonly ProposedFile[];
  /** Names the proposed changes as they are shown; `apply` takes it. Absent: it proposes none. */
  readonly digest?: string;
  /** Why the changes cannot be shown against the files of the folder, or applied. */
  readonly trouble?: { readonly code: string; readonly message: string };
}

/** A person applied the changes of a model in Studio, or took them back. */
export interface FileAction {
  readonly action: 'apply' | 'take-back';
  readonly modelId: string;
  /** Absent if Studio does not know who asks. */
  readonly by?: Person;
  /** When it began, wall clock, ms. */
  readonly at: number;
  /** `refused`: no file was changed. Absent: it is under way, or its process ended in the middle. */
  readonly end?: 'done' | 'refused';
  /** How many files it changed; only with an end. */
  readonly files?: number;
}

/** A place in a file that several answers of a fan-out name. */
export interface SharedPlace {
  /** `path:line` */
  readonly place: string;
  /** At least two. */
  readonly modelIds: readonly string[];
}

/** The answer of `GET /fan-outs/:id`. */
export interface FanOutView extends FanOutLine {
  readonly answers: readonly FanOutAnswer[];
  /** What was done with its changes in Studio: the last 20, the newest first. */
  readonly actions: readonly FileAction[];
  /** Why the judge ranks them so. */
  readonly reason?: string;
  /** Those that most answers name come first. */
  readonly shared: readonly SharedPlace[];
}

/** The answer of `POST /fan-outs/:id/apply`. */
export interface AppliedFiles {
  readonly files: readonly {
    readonly path: string;
    readonly change: 'created' | 'changed' | 'deleted';
    readonly warning?: string;
  }[];
}
