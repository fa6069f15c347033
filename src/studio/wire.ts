// What Studio's own routes answer with: the server writes these forms, and the page reads them.
import type { RunLine, RunState } from '../http/runs/run-line.ts';
import type {
  ListedWait as AnyListedWait,
  ExecutorCapabilities,
  JournalEvent,
  OpenWait,
  Person,
  RunExplanation,
  WorkflowView,
} from '../index.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';

export type { RunLine, RunState } from '../http/runs/run-line.ts';
export type { JournalEvent, OpenWait, Person } from '../index.ts';
export type { JsonObject, JsonValue } from '../values/json.ts';

/** What a reader may do here; a part that is absent has no button. */
export interface AllowedActions {
  /** Answers, steering, cancelling, parking. */
  readonly write: boolean;
  /** Proposed file changes of fan-outs may be applied. */
  readonly apply: boolean;
}

/** What the store can do beyond keeping records. */
export type StoreParts = ExecutorCapabilities;

/** The views that may have nothing to show. */
export type EmptyView = 'runs' | 'filtered' | 'waits' | 'gone' | 'fanOuts' | 'threads' | 'doctor';

/** Texts that are the same for each run. */
export interface PageWords {
  /** What an effect means for a call that may run. */
  readonly effects: { readonly [effect: string]: readonly [title: string, text: string] };
  /** How a wait ended. */
  readonly ends: { readonly [how: string]: string };
  /** What becomes of a wait whose time is over, by its kind, or by what its approval says; the part that matters most is the second. */
  readonly expiry: { readonly [what: string]: readonly [text: string, strong: string] };
  /** How far an answer, or another action of a person, has come. */
  readonly stages: { readonly [stage: string]: string };
  /** What a field of a form needs that does not fit, by its kind. */
  readonly needs: { readonly [kind: string]: string };
  readonly keys: readonly (readonly [key: string, what: string])[];
  /** What is said in a view that has nothing to show, and the call that fills it. */
  readonly empty: {
    readonly [view in EmptyView]: { readonly text: string; readonly more?: string; readonly call?: string };
  };
  /** What may be done here. */
  readonly may: string;
  /** Why a timeline has no times. */
  readonly noJournal: string;
}

/** The answer of `GET /store`. */
export interface StoreView {
  /** The name of this Studio, as its host gave it. */
  readonly title: string;
  /** Where the records are, as a person would name it, without a password; '' if it is not known. */
  readonly place: string;
  readonly parts: StoreParts;
  /** The same in words: what each part is for, or what is missing without it. */
  readonly abilities: readonly { readonly name: string; readonly isThere: boolean; readonly text: string }[];
  readonly may: AllowedActions;
  readonly words: PageWords;
  /** As whom answers are recorded. */
  readonly by?: Person;
  /** How many runs a person started are in each state. */
  readonly counts: { readonly [state in RunState]?: number };
  /** Whether there are more runs than were counted. */
  readonly isPartial: boolean;
  /** The version of records that this process writes. */
  readonly recordVersion: number;
}

/** A row of `GET /store/doctor`: what the next recovery does with a run that has not ended. */
export interface DoctorRow {
  readonly line: RunLine;
  readonly verdict: VerdictView;
  /** What it needs to continue; absent if nothing has to be done. */
  readonly needs?: string;
  /** The version of its record as it is stored; absent if it cannot be read, or is not stored yet. */
  readonly version?: number;
  /** Names of `once` tools whose calls were running when their process died: it is unknown whether they took effect. */
  readonly unknownCalls: readonly string[];
}

/** The answer of `GET /store/doctor`. */
export interface DoctorPage {
  readonly items: readonly DoctorRow[];
  /** Give it as `after` for the next page. */
  readonly next?: string;
}

/** What happens to a run next, in the words of `pawl doctor`. */
export interface VerdictView {
  readonly verdict: RunExplanation['verdict'];
  /** Why, in words. */
  readonly reason: string;
  readonly code?: string;
  readonly needsPerson: boolean;
}

/** A value in JSON that may be too long, or too deep, to send at once. */
export interface ShownValue {
  /** Absent if it is longer than 64 KiB, deeper than 64 levels, or its message has many such values: then it is at `at`. */
  readonly value?: JsonValue;
  /** The length of its JSON in UTF-8, bytes. */
  readonly bytes: number;
  /** The query of `GET /runs/:id/value` that loads it; absent if `value` is there. */
  readonly at?: string;
}

/** The parts of a wait that may be long. */
export type WaitPart = 'input' | 'modelInput' | 'detail' | 'options' | 'schema' | 'prompt' | 'question';

/** A part of a wait that is too long, or too deep, to send with it. */
export interface LongPart {
  /** Its first 16,384 characters, or fewer: of a value those of its JSON. */
  readonly text: string;
  /** The length of the whole in UTF-8, bytes. */
  readonly bytes: number;
  /** The query of `GET /runs/:id/value` that loads the whole. */
  readonly at: string;
}

/** An open wait. A value that is in `long` is not in the wait; of such a text the wait has the beginning. */
export type ShownWait<W extends OpenWait> = W & { readonly long?: { readonly [part in WaitPart]?: LongPart } };

/** An entry of `GET /waiting`. */
export type WaitLine = ShownWait<AnyListedWait>;

/** A text that may be too long to send at once. */
export interface ShownText {
  /** Of a longer text the first 16,384 characters. */
  readonly text: string;
  /** The length of the whole text in UTF-8, bytes. */
  readonly bytes: number;
  /** The query of `GET /runs/:id/value` that loads the whole text; absent if `text` is whole. */
  readonly at?: string;
}

/** The answer of `GET /runs/:id/value`: a piece of a long value, as text. */
export interface ValuePage {
  /** `json`: `text` is a piece of indented JSON. `text`: of the text itself. */
  readonly kind: 'text' | 'json';
  readonly text: string;
  /** The length of the whole, in UTF-16 units. */
  readonly chars: number;
  /** Give it as `from` for the next piece; absent = this is the last one. */
  readonly next?: string;
}

/** A tool call of the step in progress, as the record has it. */
export interface CallView {
  readonly callId: string;
  readonly name: string;
  readonly effect: 'read' | 'idempotent' | 'once';
  /** `planned`: intended. `allowed`: may start. `started`: it began. `waiting`: for a person, an event, a time, a child. `done`: its result is recorded. */
  readonly state: 'planned' | 'allowed' | 'started' | 'waiting' | 'done';
  /** How many times it was started, over all processes. */
  readonly attempt: number;
  /** The persons who allowed it, and when. */
  readonly allowed?: { readonly by: readonly Person[]; readonly at: number };
  /** The idempotency key. */
  readonly key: string;
  readonly input: ShownValue;
  readonly output?: ShownValue;
}

/** What the definition of the agent's phases was when the run began, and is now. */
interface DefinitionView {
  readonly stored?: string;
  readonly now?: string;
  /** Absent if the agent is not known here. */
  readonly isSame?: boolean;
}

/** A command that a run has not read. */
interface UnreadCommand {
  readonly kind: string;
  readonly at?: number;
  readonly by?: Person;
}

/** The record of a run, without its conversation. */
export interface ShownRecordFacts {
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
  /** How its last answer ended; absent before the first. */
  readonly finishReason?: string;
  readonly definition: DefinitionView;
  /** Names of the phases of a pipeline, in their order; absent for an agent without phases. */
  readonly phases?: readonly { readonly name: string; readonly isDone: boolean }[];
  /** The model's turn whose calls are not all done. */
  readonly openStep?: {
    readonly step: number;
    /** The first 200. */
    readonly calls: readonly CallView[];
    /** How many more there are. */
    readonly more: number;
  };
  /** Commands that the run has not read yet: the first 100. */
  readonly commands: readonly UnreadCommand[];
  /** Why it is parked. */
  readonly parked?: { readonly code: string; readonly reason: string; readonly by?: Person };
  /** The cost as the budget counts it; absent without a budget. */
  readonly spend?: { readonly tokens: number; readonly usd: number; readonly seconds: number };
  /** The state of the critic; absent if none is recorded. */
  readonly critic?: ShownValue;
  /** The whole record in JSON without its messages and images; absent for a reader who does not see the runs of all. */
  readonly raw?: ShownValue;
}

/** What was used and paid. */
export interface UsageView {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
  readonly usd?: number;
  /** A row for each model, as its record has them; none without a record. */
  readonly models: readonly ModelUsage[];
}

/** What the caller of a run has used of a budget. */
export interface BudgetView {
  /** The length of its window, ms. */
  readonly windowMs: number;
  /** Each amount that has a limit. */
  readonly amounts: readonly {
    readonly kind: 'tokens' | 'usd' | 'seconds';
    readonly spent: number;
    readonly limit: number;
  }[];
}

/** What one model of a run used. */
export interface ModelUsage {
  /** `provider/modelId`; '' = not recorded. */
  readonly model: string;
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly usd?: number;
}

/** A run below this one. */
export interface ChildView {
  readonly runId: string;
  /** The call that began it. */
  readonly callId?: string;
  /** Absent if nothing of it is stored any more. */
  readonly line?: RunLine;
}

/** Where the machine of a run is, for example `phase(1).calling-tools`. */
interface MachineState {
  readonly name: string;
  /** Whether it is the present state. Else it is the state as of the last save, from which a restart continues. */
  readonly isLive: boolean;
}

/** The machine of a workflow's run: of its timers and calls the first 200. */
export interface MachineView extends Omit<WorkflowView, 'meta' | 'machine'> {
  /** Names the drawing of `GET /runs/:id/chart`; absent where the workflow is not known here. */
  readonly chart?: string;
}

/** A text whose parts with a time are written by the page: the age of it, the time of day, or how long a lease still lasts. */
export type VerdictText = readonly (string | { readonly kind: 'age' | 'time' | 'lease'; readonly at: number })[];

/** One line on a run: why it is where it is, who holds it, what happens next. */
export interface VerdictLine {
  readonly state: RunState;
  readonly title: string;
  /** The tool that asks, or the code of the reason. */
  readonly name?: string;
  readonly text: VerdictText;
  /** The button that changes it. */
  readonly action?: { readonly word: string; readonly view: 'inbox' | 'run'; readonly id: string };
}

/** An answer that the store holds: it counts when a process takes up the run. */
export interface AnswerView {
  readonly how: 'approve' | 'deny' | 'answer' | 'wake';
  readonly by?: Person;
  /** Wall clock, ms; absent if the store does not note it. */
  readonly at?: number;
  /** It will end the wait: no other answer counts. */
  readonly isLast?: true;
  /** The input as the person changed it: the call runs with it. */
  readonly input?: ShownValue;
  /** The note of an approval. */
  readonly note?: string;
}

/** The answer of `GET /runs/:id/record`. */
export interface RecordView {
  readonly line: RunLine;
  readonly says: VerdictLine;
  readonly rootRunId: string;
  readonly parentRunId?: string;
  readonly waits: readonly ShownWait<OpenWait>[];
  /** The answers that no process has read yet, by the ids of their waits: the first 8 of each. */
  readonly answers?: { readonly [waitId: string]: readonly AnswerView[] };
  /**
   * The schemas of the inputs that a person may change, by the ids of their waits. Absent where the agent, or its tool, is not known
   * here.
   */
  readonly forms?: { readonly [waitId: string]: JsonObject };
  readonly verdict: VerdictView;
  /** Absent if it cannot be read, or is not kept after the end. */
  readonly state?: MachineState;
  /** Absent for a run of an agent. */
  readonly workflow?: MachineView;
  /** The process that holds the run; only for a reader who sees the runs of all. */
  readonly owner?: {
    /** In words: `process 4711 on host`. */
    readonly name: string;
    /** As events and lines name it. */
    readonly id: string;
    /** Until when its lease lasts, wall clock, ms. */
    readonly leaseUntil?: number;
    /** Whether it is the process that serves this Studio. */
    readonly isHere: boolean;
  };
  /** What continues it while no process holds it, and the command for that; only for a reader who sees the runs of all. */
  readonly resume?: { readonly text: string; readonly command?: string };
  /** Absent if it cannot be read, or is not kept after the end. */
  readonly record?: ShownRecordFacts;
  /** Why there is no record. */
  readonly missing?: string;
  readonly usage: UsageView;
  /** Absent without a budget that says it, and for a run without a record. */
  readonly budget?: BudgetView;
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
  readonly texts: readonly ShownText[];
  /** What the model thought, if it was recorded. */
  readonly reasoning?: readonly ShownText[];
  /** Its files, without their content. */
  readonly files?: readonly { readonly mediaType: string; readonly bytes: number }[];
  readonly calls?: readonly { readonly callId: string; readonly name: string; readonly input: ShownValue }[];
  readonly results?: readonly {
    readonly callId: string;
    readonly name: string;
    readonly output: ShownValue;
    readonly isError: boolean;
  }[];
  /** How many more parts it has: the first 200 are shown. */
  readonly more?: number;
}

/** The answer of `GET /runs/:id/messages`. */
export interface RecordedMessagesPage {
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
  /** An event; `cut` names its fields that were longer than 64 KiB: they are at `GET /runs/:id/value`. */
  | { readonly type: 'run'; readonly event: JournalEvent; readonly cut?: readonly string[] }
  /** A run is not there any more. */
  | { readonly type: 'gone'; readonly runId: string }
  /** The store does not answer, or answers again. */
  | { readonly type: 'store'; readonly isAway: boolean; readonly code?: string; readonly message?: string };
