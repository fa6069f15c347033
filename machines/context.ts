import type { DoneActorEvent } from 'xstate';
import { type Limits, unresolvedLimits } from '../src/run/limits.ts';
import type { OpenCall } from '../src/run/open-step.ts';
import type { PhaseFacts } from '../src/run/phase.ts';
import type { Progress, ToolFacts } from '../src/run/progress.ts';
import type { FinishReason, LostUse, ModelReply } from '../src/run/reply.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { SettledWait, Wait } from '../src/run/waits/wait.ts';
import type { WaitAnswer } from '../src/run/waits/wait-answer.ts';
import type { Judgement } from '../src/run/waits/wait-rules.ts';
import type { InspectedSteps, MachineAction, WorkflowEvent } from '../src/run/workflow/advanced.ts';
import type { EnteredEvent, WorkflowMessage } from '../src/run/workflow/state.ts';
import type { ErrorData } from '../src/values/error-data.ts';
import type { Hidden } from '../src/values/hidden.ts';
import type { JsonValue } from '../src/values/json.ts';
import type { AssistantMessage, Message, ToolOutput } from '../src/values/message.ts';
import type { Spend, Usage } from '../src/values/usage.ts';

/** The context of a run machine: plain data, no port, no clock, no store. */
export interface RunContext {
  readonly progress: Progress;
  readonly limits: Limits;
  readonly tools: ToolFacts;
  /** The agent's phases; none = a single loop. */
  readonly phases: readonly PhaseFacts[];
  /** Whether the agent has an output schema. */
  readonly hasOutputSchema: boolean;
  /** Whether a critic must be asked before the step limit ends the run. */
  readonly isWatched: boolean;
  /** Whether the executor has a rule of its own for approvals: then every call is judged. */
  readonly hasPolicy: boolean;
  /** Whether the open step came from a host's own history: then no process has judged its calls. */
  readonly isUnjudged?: boolean;
  /** Whether an inspector may watch: then model and tool calls are named after their steps, which costs some time. */
  readonly isInspected: boolean;
  readonly isDurable: boolean;
  /** A host's machine has the run: a run that is only left stays active there, and is tried again. */
  readonly isHosted?: true;
  /** The refusal says nothing about the run: a later try may continue it. */
  readonly isPassing?: true;
  /** The size limit of the record; infinite without one. */
  readonly maxRecordBytes: number;
  /** Boundaries are numbered; the run acts on nothing past a boundary before that boundary is stored. */
  readonly requested: number;
  readonly persisted: number;
  /** Calls with effects whose intent is being stored, by the boundary that carries it. */
  readonly intents: readonly { readonly boundary: number; readonly calls: readonly OpenCall[] }[];
  /** The call that works at each place; calls that run at the same time have a place each, and later ones reuse it. */
  readonly places: readonly (string | undefined)[];
  /** Messages that were steered while the run was resolving. */
  readonly held: readonly Steer[];
  /** Nudges of the critic in that time. */
  readonly heldNudges: readonly Message[];
  readonly heldSteps: number;
  /** The model's reply, until the run may act on it. */
  readonly reply?: ModelReply;
  /** The decisions about the calls of that reply, where some need one. */
  readonly judgements?: readonly Judgement[];
  /** Of a workflow: the calls that were judged last, and may start. */
  readonly judgedCalls?: readonly string[];
  readonly error?: ErrorData;
  /** The answer as the agent's output schema returned it. */
  readonly data?: JsonValue;
  /** Why the run was stopped from outside; the first cause stays. */
  readonly cause?: ErrorData;
  /** A cancel that found the run left; it stays until the run has ended by it. */
  readonly cancel?: ErrorData;
  /** The slice of this process is over, and why: no call begins any more; those under way may end. */
  readonly yielding?: ErrorData;
  /** The calls whose child runs were left for another process, as this run is about to be. */
  readonly leftCalls: readonly string[];
  readonly output?: RunOutput;
  /** A restored run: its snapshot, which is valid while its progress is this one. */
  readonly restored?: Hidden<{ readonly progress: Progress; readonly persisted: object }>;
}

/** A run that has resolved nothing yet, without its progress. */
export const unresolved: Omit<RunContext, 'progress'> = {
  limits: unresolvedLimits,
  tools: {},
  phases: [],
  hasOutputSchema: false,
  isWatched: false,
  hasPolicy: false,
  isInspected: false,
  isDurable: false,
  maxRecordBytes: Number.POSITIVE_INFINITY,
  requested: 0,
  persisted: 0,
  intents: [],
  places: [],
  leftCalls: [],
  held: [],
  heldNudges: [],
  heldSteps: 0,
};

/** What a run begins with: once for most runs, at each try for one of a host's machine. */
export type RunInput = Pick<RunContext, 'progress' | 'restored' | 'isHosted'>;

/** The result of `resolving`. */
export type Resolution =
  | ({ readonly kind: 'accepted' } & Pick<
      RunContext,
      | 'progress'
      | 'limits'
      | 'tools'
      | 'phases'
      | 'hasOutputSchema'
      | 'isWatched'
      | 'hasPolicy'
      | 'isUnjudged'
      | 'isInspected'
      | 'isDurable'
      | 'maxRecordBytes'
    >)
  /** The answer exists already: the run returns it again and does nothing else. */
  | { readonly kind: 'answered'; readonly output: RunOutput }
  | ({
      readonly kind: 'refused';
      readonly error: ErrorData;
      /** Why the run is left for another process; absent = the start has failed. */
      readonly cause?: ErrorData;
      readonly progress: Progress;
      readonly isDurable: boolean;
    } & Pick<RunContext, 'isPassing'>);

/** A message to the model before its next turn. `receipt` names it in emitted events. */
export interface Steer {
  readonly message: Message;
  readonly receipt: string;
  /** The id of the command that sent it, if it came from another process. */
  readonly command?: string;
}

/** A model turn without a reply, and what its attempts cost. */
export interface FailedAnswer {
  readonly error: ErrorData;
  readonly usage?: Usage;
  /** The model that was asked, if anything was used: `provider/modelId`. */
  readonly model?: string;
  readonly spend?: Spend;
  /** The part of it that other models of the list cost, which failed before. */
  readonly lost?: readonly LostUse[];
  /** How the answer ended that the run may not take. */
  readonly finishReason?: FinishReason;
  /** The model is away, or the call has a later turn: the run waits, and asks again. */
  readonly wait?: Wait;
  /** The run is left: the setup of this process cannot ask the model, or the budget refuses the call. */
  readonly leaves?: true;
  /** The model was away for too long: the run parks instead of failing. */
  readonly parks?: true;
}

export type ModelAnswer = { readonly reply: ModelReply } | FailedAnswer;
/** The check of an answer against the output schema. */
export type OutputCheck = { readonly data: JsonValue } | { readonly problem: string };
export type ToolAnswer = {
  readonly callId: string;
  /** The id is that of the model's turn, which may repeat: a test walks the chart. */
  readonly isOfTurn?: true;
  readonly result: ToolOutput;
  /** The run had to leave before the call began: the call is withdrawn. */
  readonly isUnbegun?: true;
  /** The child run of the call was left for another process: the call stays started, and finds it again. */
  readonly isLeft?: true;
  /** It is not known whether the call took effect, and a person decides: it stays started, and the run parks. */
  readonly parks?: ErrorData;
  /** The call needs something from outside, and gave its place back: it runs again when the wait is over. */
  readonly wait?: Wait;
};
/** The end of the effect `rest`: the store has the run, and knows when it is due. */
export interface Rested {
  readonly cause: ErrorData;
}

export type RunMachineEvent =
  /** The host cancels the run. */
  | { readonly type: 'run.cancel'; readonly reason?: string }
  | ({ readonly type: 'run.steer' } & Steer)
  /** The run must stop when no call with effects is running any more. */
  | { readonly type: 'run.leave'; readonly cause: ErrorData }
  /** The slice is over: the run begins no call any more, and leaves when those under way have ended. */
  | { readonly type: 'run.yield'; readonly cause: ErrorData }
  /** The run must stop: shutdown, deadline, the caller's signal, a lost lease, a store that failed for good. */
  | { readonly type: 'run.stop'; readonly cause: ErrorData }
  /** These commands of other processes wait no longer: the record may forget them. */
  | { readonly type: 'run.forget'; readonly commands: readonly string[] }
  /** A child run recorded something new: this run is making progress as well. */
  | { readonly type: 'run.progressed' }
  /** The critic sends the model a message before its next turn. */
  | { readonly type: 'run.nudge'; readonly message: Message }
  /** The critic allows this many more steps. */
  | { readonly type: 'run.raise'; readonly by: number }
  /** An answer to one of its waits, or the expiry of one. `receipt` names it in emitted events. */
  | { readonly type: 'wait.answer'; readonly answer: WaitAnswer; readonly receipt: string }
  /** A machine event for a workflow. `id` names it: sent twice, it counts once. */
  | { readonly type: 'workflow.event'; readonly entered: EnteredEvent }
  /** An event for another run has arrived there, or never will. */
  | { readonly type: 'workflow.sent'; readonly id: string }
  /** Everything up to this boundary is recorded. */
  | { readonly type: 'boundary.persisted'; readonly boundary: number }
  | DoneActorEvent<Resolution, 'resolve'>
  | DoneActorEvent<RunOutput, 'settle'>
  | DoneActorEvent<RunInput, 'await-retry'>
  | DoneActorEvent<OutputCheck, 'check-output'>
  | DoneActorEvent<void, 'ask-critic'>
  | DoneActorEvent<readonly Judgement[], 'judge-calls'>
  | DoneActorEvent<void, 'take-turn'>
  | DoneActorEvent<Rested, 'rest'>
  | DoneActorEvent<ModelAnswer, `model${string}`>
  | DoneActorEvent<ToolAnswer, `tool.${string}`>;

export type RunEmitted =
  /** `resolving` is over: a durable run's first record is stored. */
  | { readonly type: 'run.accepted' }
  /** The work begins, or a phase of it, in this state. */
  | { readonly type: 'run.working'; readonly state: string }
  /** The run was stopped from outside: everything that works for it should end. */
  | { readonly type: 'run.stopping'; readonly cause: ErrorData }
  /** The host cancels a run that was left: its record must end. */
  | { readonly type: 'run.cancelling'; readonly cause: ErrorData }
  /** A message waits for the next turn; it is stored when `boundary` is. */
  | { readonly type: 'steer.queued'; readonly receipt: string; readonly boundary: number }
  /** Too many messages wait already; or this one is larger than the run's remaining room, in bytes. */
  | { readonly type: 'steer.refused'; readonly receipt: string; readonly bytes?: number; readonly left?: number }
  /** There was no room for a message of the critic. */
  | { readonly type: 'nudge.dropped'; readonly bytes: number; readonly left: number }
  | { readonly type: 'steer.applied'; readonly count: number; readonly texts: readonly string[] }
  /** A call of the step that has just opened is answered without being run. */
  | { readonly type: 'call.refused'; readonly step: number; readonly call: OpenCall }
  /** These waits are open once `boundary` is stored. */
  | { readonly type: 'waits.opened'; readonly waits: readonly Wait[]; readonly boundary: number }
  /**
   * An answer changed the run: the change is stored when `boundary` is. `opened`: the question is asked again. `reason`: the wait is
   * over without an answer.
   */
  | {
      readonly type: 'answer.taken';
      readonly receipt: string;
      readonly boundary: number;
      readonly wait: Wait;
      readonly settled?: SettledWait;
      readonly opened?: Wait;
      readonly reason?: string;
    }
  /** An answer changed nothing: it is known (`known`), came too late (`other`, `gone`), or does not fit the wait. */
  | {
      readonly type: 'answer.refused';
      readonly receipt: string;
      readonly why: 'known' | 'other' | 'gone' | 'unfit';
      readonly settled?: SettledWait;
      readonly wait?: Wait;
    }
  /** A machine event waits for the machine, and is stored when `boundary` is. */
  | { readonly type: 'event.entered'; readonly id: string; readonly boundary: number }
  /** A call of a workflow was stopped before it answered. */
  /** The state of a call was left; `isAtEnd`: the run ends with it, and no late result is said. */
  | { readonly type: 'call.stopped'; readonly call: OpenCall; readonly isAtEnd: boolean }
  /** These waits are over without an answer: the machine does not need them any more. */
  | { readonly type: 'waits.withdrawn'; readonly waits: readonly Wait[] }
  /** Actions of a workflow's machine, which run once `boundary` is stored. */
  | { readonly type: 'workflow.acts'; readonly acts: readonly MachineAction[]; readonly boundary: number }
  /** What the machine of a workflow did, for inspectors, once `boundary` is stored. */
  | ({ readonly type: 'workflow.inspected'; readonly boundary: number } & InspectedSteps)
  /** Events for other runs, which are sent once `boundary` is stored. */
  | { readonly type: 'messages.posted'; readonly messages: readonly WorkflowMessage[]; readonly boundary: number }
  | WorkflowEvent
  /** Every open call waits, or the model is away. */
  | { readonly type: 'waiting.began'; readonly progress: Progress }
  /** The run works again, or ends. */
  | { readonly type: 'waiting.ended' }
  | {
      readonly type: 'step.done';
      readonly progress: Progress;
      readonly message: AssistantMessage | undefined;
      readonly tools: readonly string[];
    }
  | { readonly type: 'phase.started'; readonly index: number; readonly name: string }
  | { readonly type: 'phase.done'; readonly index: number; readonly name: string; readonly output: string }
  /** There is a state to record. `force`: the throttle must not delay it. */
  | {
      readonly type: 'boundary';
      readonly boundary: number;
      readonly kind: 'step' | 'phase' | 'intent' | 'result' | 'steer' | 'wait' | 'answer';
      readonly force: boolean;
      readonly progress: Progress;
    };
