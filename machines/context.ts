import type { DoneActorEvent } from 'xstate';
import { type Limits, unresolvedLimits } from '../src/run/limits.ts';
import type { OpenCall } from '../src/run/open-step.ts';
import type { PhaseFacts } from '../src/run/phase.ts';
import type { Progress, ToolFacts } from '../src/run/progress.ts';
import type { ModelReply } from '../src/run/reply.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { ErrorData } from '../src/values/error-data.ts';
import type { Hidden } from '../src/values/hidden.ts';
import type { JsonValue } from '../src/values/json.ts';
import type { Message, ToolOutput } from '../src/values/message.ts';
import type { Spend, Usage } from '../src/values/usage.ts';

/** What a run machine knows: plain data, no port, no clock, no store. */
export interface RunContext {
  readonly progress: Progress;
  readonly limits: Limits;
  readonly tools: ToolFacts;
  /** The agent's phases; none = a single loop. */
  readonly phases: readonly PhaseFacts[];
  /** Whether the answer has to have a certain shape. */
  readonly hasOutputSchema: boolean;
  /** Whether a critic is to be asked before the step limit ends the run. */
  readonly isWatched: boolean;
  /** Whether somebody may look on: then model and tool calls are named after their steps, which costs some time. */
  readonly isInspected: boolean;
  readonly isDurable: boolean;
  /** How large the record may become; infinite without one. */
  readonly maxRecordBytes: number;
  /** Boundaries are numbered; nothing past one is acted upon before it is in the store. */
  readonly requested: number;
  readonly persisted: number;
  /** Calls with effects whose intent is on its way to the store, by the boundary that carries it. */
  readonly intents: readonly { readonly boundary: number; readonly calls: readonly OpenCall[] }[];
  /** Which call works at each place; calls that run side by side have a place each, and later ones take it again. */
  readonly places: readonly (string | undefined)[];
  /** What was said to the run while it was resolving. */
  readonly held: readonly Steer[];
  /** What the critic did meanwhile. */
  readonly heldNudges: readonly Message[];
  readonly heldSteps: number;
  /** The model's reply, until it may be acted upon. */
  readonly reply?: ModelReply;
  readonly error?: ErrorData;
  /** The answer as the agent's output schema gave it. */
  readonly data?: JsonValue;
  /** Why the run was stopped from outside; the first cause stands. */
  readonly cause?: ErrorData;
  readonly output?: RunOutput;
  /** A restored run: the snapshot that it came from, which holds as long as its progress is this one. */
  readonly restored?: Hidden<{ readonly progress: Progress; readonly persisted: object }>;
}

/** A run that has resolved nothing yet, besides where it is. */
export const unresolved: Omit<RunContext, 'progress'> = {
  limits: unresolvedLimits,
  tools: {},
  phases: [],
  hasOutputSchema: false,
  isWatched: false,
  isInspected: false,
  isDurable: false,
  maxRecordBytes: Number.POSITIVE_INFINITY,
  requested: 0,
  persisted: 0,
  intents: [],
  places: [],
  held: [],
  heldNudges: [],
  heldSteps: 0,
};

export type RunInput = Pick<RunContext, 'progress' | 'restored'>;

/** What `resolving` found. */
export type Resolution =
  | ({ readonly kind: 'accepted' } & Pick<
      RunContext,
      | 'progress'
      | 'limits'
      | 'tools'
      | 'phases'
      | 'hasOutputSchema'
      | 'isWatched'
      | 'isInspected'
      | 'isDurable'
      | 'maxRecordBytes'
    >)
  /** Somebody already has the answer: it is given again, nothing else happens. */
  | { readonly kind: 'answered'; readonly output: RunOutput }
  | { readonly kind: 'refused'; readonly error: ErrorData; readonly progress: Progress; readonly isDurable: boolean };

/** Something to say to the model before its next turn. `receipt` names it in what is emitted. */
export interface Steer {
  readonly message: Message;
  readonly receipt: string;
  /** The id of the command that said it, when it came from another process. */
  readonly command?: string;
}

/** A reply, or why there is none and what the attempts cost. */
export type ModelAnswer =
  | { readonly reply: ModelReply }
  | { readonly error: ErrorData; readonly usage?: Usage; readonly spend?: Spend };
/** What became of an answer that has to have a certain shape. */
export type OutputCheck = { readonly data: JsonValue } | { readonly problem: string };
export type ToolAnswer = {
  readonly callId: string;
  readonly result: ToolOutput;
  /** The run was told to leave before the call had begun: it is taken back. */
  readonly isUnbegun?: true;
};

export type RunMachineEvent =
  /** The host cancels the run. */
  | { readonly type: 'run.cancel'; readonly reason?: string }
  | ({ readonly type: 'run.steer' } & Steer)
  /** The run has to stop when no call with effects is under way any more. */
  | { readonly type: 'run.leave'; readonly cause: ErrorData }
  /** The run has to stop: shutdown, deadline, the caller's signal, a lost lease, a store that failed for good. */
  | { readonly type: 'run.stop'; readonly cause: ErrorData }
  /** These commands of other processes wait no longer: the record need not remember them. */
  | { readonly type: 'run.forget'; readonly commands: readonly string[] }
  /** A run that a call of this one began has recorded something new: this one is getting on as well. */
  | { readonly type: 'run.progressed' }
  /** The critic says something to the model before its next turn. */
  | { readonly type: 'run.nudge'; readonly message: Message }
  /** The critic allows so many more steps. */
  | { readonly type: 'run.raise'; readonly by: number }
  /** Everything up to this boundary is recorded. */
  | { readonly type: 'boundary.persisted'; readonly boundary: number }
  | DoneActorEvent<Resolution, 'resolve'>
  | DoneActorEvent<RunOutput, 'settle'>
  | DoneActorEvent<OutputCheck, 'check-output'>
  | DoneActorEvent<void, 'ask-critic'>
  | DoneActorEvent<ModelAnswer, `model${string}`>
  | DoneActorEvent<ToolAnswer, `tool.${string}`>;

export type RunEmitted =
  /** `resolving` is over: a durable run's first record is stored. */
  | { readonly type: 'run.accepted' }
  /** The work begins, or a phase of it, in this state. */
  | { readonly type: 'run.working'; readonly state: string }
  /** The run was stopped from outside: whatever works for it should end. */
  | { readonly type: 'run.stopping'; readonly cause: ErrorData }
  /** A message waits for the next turn; it is in the store when `boundary` is. */
  | { readonly type: 'steer.queued'; readonly receipt: string; readonly boundary: number }
  /** Too many messages wait already; or this one is larger than what the run has room for, in bytes. */
  | { readonly type: 'steer.refused'; readonly receipt: string; readonly bytes?: number; readonly left?: number }
  /** What the critic wanted to say found no room. */
  | { readonly type: 'nudge.dropped'; readonly bytes: number; readonly left: number }
  | { readonly type: 'steer.applied'; readonly count: number }
  /** A call of the step that has just opened is answered without being run. */
  | { readonly type: 'call.refused'; readonly step: number; readonly call: OpenCall }
  | { readonly type: 'step.done'; readonly progress: Progress; readonly tools: readonly string[] }
  | { readonly type: 'phase.started'; readonly index: number; readonly name: string }
  | { readonly type: 'phase.done'; readonly index: number; readonly name: string; readonly output: string }
  /** Here is something to record. `force`: the throttle must not delay it. */
  | {
      readonly type: 'boundary';
      readonly boundary: number;
      readonly kind: 'step' | 'phase' | 'intent' | 'result' | 'steer';
      readonly force: boolean;
      readonly progress: Progress;
    };
