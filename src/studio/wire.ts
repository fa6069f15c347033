// What Studio's own routes answer with: the server writes these forms, and the page reads them.
import type { RunLine, RunState } from '../http/runs/run-line.ts';
import type { JournalEvent, OpenWait, Person } from '../index.ts';
import type { JsonValue } from '../values/json.ts';

export type { RunLine, RunState } from '../http/runs/run-line.ts';
export type { JournalEvent, ListedWait, OpenWait, Person } from '../index.ts';
export type { JsonObject, JsonValue } from '../values/json.ts';

/** What a reader may do here; a part that is absent has no button. */
export interface Allowed {
  /** Answers, steering, cancelling, parking. */
  readonly write: boolean;
  /** Proposed file changes of fan-outs may be applied. */
  readonly apply: boolean;
}

/** What the store can do beyond keeping records. */
export interface StoreParts {
  readonly journal: boolean;
  readonly waits: boolean;
  readonly commands: boolean;
  readonly history: boolean;
  readonly threads: boolean;
}

/** The answer of `GET /store`. */
export interface StoreView {
  /** The name of this Studio, as its host gave it. */
  readonly title: string;
  /** Where the records are, as a person would name it, without a password; '' if it is not known. */
  readonly place: string;
  readonly parts: StoreParts;
  readonly may: Allowed;
  /** As whom answers are recorded. */
  readonly by?: Person;
  /** How many runs a person started are in each state. */
  readonly counts: { readonly [state in RunState]?: number };
  /** Whether there are more runs than were counted. */
  readonly isPartial: boolean;
  /** The version of records that this process writes. */
  readonly recordVersion: number;
}

/** What happens to a run next, in the words of `pawl doctor`. */
export interface VerdictView {
  readonly verdict: 'resumes' | 'waits' | 'child' | 'live' | 'parked' | 'skipped' | 'fails' | 'unreadable' | 'ended';
  /** Why, in words. */
  readonly reason: string;
  readonly code?: string;
  readonly needsPerson: boolean;
}

/** A value in JSON that may be too long to send at once. */
export interface ShownValue {
  /** Absent if it is longer than 64 KiB: it is at `GET /runs/:id/value?call=…&part=…`. */
  readonly value?: JsonValue;
  /** The length of its JSON in UTF-8, bytes. */
  readonly bytes: number;
}

/** A tool call of the step in progress, as the record has it. */
export interface CallView {
  readonly callId: string;
  readonly name: string;
  readonly effect: 'read' | 'idempotent' | 'once';
  /** `planned`: intended. `allowed`: may start. `started`: it began. `waiting`: for a person, an event, a time, a child. `done`: its result is recorded. */
  readonly state: 'planned' | 'allowed' | 'started' | 'waiting' | 'done';
  readonly key: string;
  readonly input: ShownValue;
  readonly output?: ShownValue;
}

/** What the definition of the agent's phases was when the run began, and is now. */
export interface DefinitionView {
  readonly stored?: string;
  readonly now?: string;
  /** Absent if the agent is not known here. */
  readonly isSame?: boolean;
}

/** The record of a run, without its conversation. */
export interface RecordFacts {
  readonly version: number;
  readonly revision: number;
  /** Wall clock of the last save, ms. */
  readonly updatedAt: number;
  /** The size of the record, bytes; an estimate. */
  readonly bytes: number;
  readonly iteration: number;
  readonly attempts: number;
  readonly elapsedMs: number;
  readonly messages: number;
  readonly definition: DefinitionView;
  /** Names of the phases of a pipeline, in their order; absent for an agent without phases. */
  readonly phases?: readonly { readonly name: string; readonly isDone: boolean }[];
  /** The model's turn whose calls are not all done. */
  readonly openStep?: { readonly step: number; readonly calls: readonly CallView[] };
  /** Commands that the run has not read yet. */
  readonly commands: readonly { readonly kind: string; readonly at?: number; readonly by?: Person }[];
  /** Why and since when it is parked. */
  readonly parked?: { readonly code: string; readonly reason: string };
  /** The whole head in JSON, without secrets that `redact` removed. */
  readonly raw: ShownValue;
}

/** What was used and paid. */
export interface UsageView {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
  readonly usd?: number;
  /** A row a model, if the store knows them. */
  readonly models: readonly {
    readonly model: string;
    readonly inputTokens: number;
    readonly outputTokens: number;
    readonly usd?: number;
  }[];
}

/** A run below this one. */
export interface ChildView {
  readonly runId: string;
  readonly callId?: string;
  readonly line?: RunLine;
}

/** The answer of `GET /runs/:id/record`. */
export interface RecordView {
  readonly line: RunLine;
  readonly rootRunId: string;
  readonly parentRunId?: string;
  readonly waits: readonly OpenWait[];
  readonly verdict: VerdictView;
  /** The process that holds the run, and until when its lease lasts, wall clock, ms. */
  readonly owner?: { readonly name: string; readonly leaseUntil?: number };
  /** Absent if it cannot be read, or is not kept after the end. */
  readonly record?: RecordFacts;
  /** Why there is no record. */
  readonly missing?: string;
  readonly usage: UsageView;
  readonly children: readonly ChildView[];
  /** How it ended. */
  readonly result?: {
    readonly status: string;
    readonly output: string;
    readonly error?: { readonly code: string; readonly message: string };
  };
}

/** One message of `GET /runs/:id/messages`. */
export interface MessageView {
  readonly index: number;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** The person who steered the run with it. */
  readonly by?: Person;
  /** Whether it stands for earlier messages that were compacted. */
  readonly isSummary?: true;
  readonly texts: readonly string[];
  readonly calls?: readonly { readonly callId: string; readonly name: string; readonly input: ShownValue }[];
  readonly results?: readonly {
    readonly callId: string;
    readonly name: string;
    readonly output: ShownValue;
    readonly isError: boolean;
  }[];
}

/** The answer of `GET /runs/:id/messages`. */
export interface MessagesPage {
  readonly items: readonly MessageView[];
  readonly total: number;
  /** Give it as `after` for the next page. */
  readonly next?: string;
  /** Why there are none. */
  readonly missing?: string;
}

/** A frame of `GET /watch`. */
export type WatchFrame =
  /** The lines that have changed; the first frame has the first page. */
  | { readonly type: 'runs'; readonly lines: readonly RunLine[] }
  | { readonly type: 'run'; readonly event: JournalEvent }
  /** A run is not there any more. */
  | { readonly type: 'gone'; readonly runId: string }
  /** The store does not answer, or answers again. */
  | { readonly type: 'store'; readonly isAway: boolean; readonly code?: string; readonly message?: string };
