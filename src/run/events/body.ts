// What a run says: the shape of each event.
import type { ErrorData } from '../../values/error-data.ts';
import type { JsonValue } from '../../values/json.ts';
import type { AssistantMessage, ToolOutput } from '../../values/message.ts';
import type { MessageMark } from '../../values/message-mark.ts';
import type { Spend, Usage } from '../../values/usage.ts';
import type { RunStatus } from '../finalize.ts';
import type { ToolEffect } from '../ledger.ts';
import type { FinishReason, ModelSource } from '../reply.ts';
import type { HowAnswered, Person, Wait } from '../waits/wait.ts';

/** The parts of a model's message. */
export type ReplyContent = AssistantMessage['content'];

/**
 * An event without the run, the number and the time. `step` counts from 1 over the whole life of the run. `block` is the index
 * of a part in the content of the step's message, `offset` a place in its text, in UTF-16 units. `owner` is the owner of the
 * run's claim, `revision` the newest one of its record that this process knows to be stored.
 */
export type RunEventBody =
  /** A new run was accepted. `isSlice`: this process has it only for a slice of time, and leaves when that is over. */
  | { readonly type: 'run.started'; readonly isSlice?: true; readonly owner?: string; readonly revision?: number }
  /** A recorded run continues; recorded events are not published again. `isSlice` as in `run.started`. */
  | {
      readonly type: 'run.resumed';
      readonly iteration: number;
      readonly attempts: number;
      /** The run's cost so far, as a budget counts it; absent without a budget. */
      readonly spend?: Spend;
      readonly isSlice?: true;
      readonly owner?: string;
      readonly revision?: number;
    }
  /**
   * The process leaves the run, with its newest state, to another one: it shuts down or drains, or its host stopped the run. Not
   * at the end of a slice, which is followed by another one.
   */
  | {
      readonly type: 'run.left';
      readonly why: 'shutdown' | 'stop';
      readonly owner?: string;
      readonly revision?: number;
    }
  /** The run's machine is in another state, for example `completing`. */
  | { readonly type: 'run.status'; readonly state: string }
  /** The run is parked until a person unparks it: it parked itself, a person parked it, or a start found it parked. */
  | { readonly type: 'run.parked'; readonly code: string; readonly reason: string; readonly by?: Person }
  /** A person unparked the run: the next start continues it. Only in the journal: the run is not live then. */
  | { readonly type: 'run.unparked'; readonly by?: Person }
  /**
   * The run had ended with this status and error, and continues. Only in the journal: the run is not live then. There its
   * readers get it, and not the `run.ended` before it.
   */
  | {
      readonly type: 'run.retried';
      readonly status: RunStatus;
      readonly error?: ErrorData;
      readonly by?: Person;
    }
  /** The last event, but of a process that parks the run: its last one is `run.parked`. */
  | { readonly type: 'run.ended'; readonly status: RunStatus; readonly output: string; readonly error?: ErrorData }
  /** A model turn begins. */
  | { readonly type: 'step.started'; readonly step: number }
  /** A model turn and its tool calls are over; `usage` is the run's total so far. */
  | {
      readonly type: 'step.done';
      readonly step: number;
      readonly usage: Usage;
      readonly tools: readonly string[];
      /** How the answer ended; absent for a step with calls. */
      readonly finishReason?: FinishReason;
      /** The model that made the message of this step, its tokens, and how long it took. */
      readonly answer?: MessageMark;
      /** The run's cost so far, as a budget counts it; absent without a budget. */
      readonly spend?: Spend;
    }
  /** The pieces of this step, and all events of later ones, are void: the step is made again. */
  | { readonly type: 'step.reset'; readonly step: number }
  /** The whole message of a step, for a reader that did not get its pieces. Never in `run.events()`. */
  | { readonly type: 'step.snapshot'; readonly step: number; readonly content: AssistantMessage['content'] }
  /** A piece of the model's answer as it arrives. After `step.reset` the pieces of a step come again. */
  | {
      readonly type: 'model.delta';
      readonly step: number;
      readonly block: number;
      readonly offset: number;
      readonly kind: 'text' | 'reasoning';
      readonly text: string;
    }
  /** The model's answer has a file; its content is in the message. */
  | { readonly type: 'model.file'; readonly step: number; readonly block: number; readonly mediaType: string }
  /** The model named a source. Published when its answer is complete; the message does not have it. */
  | { readonly type: 'model.source'; readonly step: number; readonly source: ModelSource }
  /** A model call failed with a retryable error. `attempt` is the one made after `delayMs`: the first retry is 2. */
  | {
      readonly type: 'model.retry';
      readonly step: number;
      /** The model that is asked again: `provider/modelId`. */
      readonly model: string;
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ErrorData;
      /** The HTTP status of the failure, if it had one. */
      readonly status?: number;
    }
  /** A model of a list failed, and the next one is asked in the same step. `attempt` is the number of the model; the second one is 2. */
  | {
      readonly type: 'model.fallback';
      readonly step: number;
      readonly attempt: number;
      /** `provider/modelId`. */
      readonly from: string;
      readonly to: string;
      readonly error: ErrorData;
      /** The HTTP status of the failure, if it had one. */
      readonly status?: number;
    }
  /** A piece of a call's arguments, as the model writes them: JSON text. With `redact` only one comes, and its text is empty. */
  | {
      readonly type: 'tool.input';
      readonly step: number;
      readonly block: number;
      readonly offset: number;
      readonly callId: string;
      readonly name: string;
      readonly text: string;
    }
  /** A tool call begins. */
  | {
      readonly type: 'tool.started';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly effect: ToolEffect;
      readonly input: JsonValue;
      readonly attempt: number;
      readonly owner?: string;
      readonly revision?: number;
    }
  /** A tool reported its progress, as plain JSON. */
  | { readonly type: 'tool.progress'; readonly callId: string; readonly name: string; readonly progress: JsonValue }
  /**
   * A tool call is over, `ms` after it began; 0 for a call that was refused. `isLate` marks a result that came after the call
   * had been answered without it: it is not part of the run.
   */
  | {
      readonly type: 'tool.done';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly effect: ToolEffect;
      readonly output: ToolOutput;
      readonly ms: number;
      readonly isLate?: true;
      readonly owner?: string;
      readonly revision?: number;
    }
  /**
   * A `once` call may have taken effect, and is not repeated: the process died, the connection broke, its time was over, or the run
   * ended, while it ran.
   */
  | {
      readonly type: 'call.unknown';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly attempt: number;
    }
  /** A phase of a pipeline begins; `index` counts from 0. */
  | { readonly type: 'phase.started'; readonly index: number; readonly name: string }
  /** A phase is over. */
  | { readonly type: 'phase.done'; readonly index: number; readonly name: string; readonly output: string }
  /** The phase was complete before this process continued the run. */
  | { readonly type: 'phase.skipped'; readonly index: number; readonly name: string }
  /** A steered message was accepted, and waits for the next turn. */
  | { readonly type: 'steer.queued' }
  /** The waiting messages, and nudges of a critic, are in the transcript; the model reads them in the turn that begins. */
  | { readonly type: 'steer.applied'; readonly count: number; readonly texts?: readonly string[] }
  /** The run waits, and this is stored. `input` is that of its call; a person sees it before a decision. */
  | { readonly type: 'wait.opened'; readonly wait: Wait; readonly input?: JsonValue }
  /** A wait is over, or, with `votes`, one more person has approved. */
  | {
      readonly type: 'wait.answered';
      readonly waitId: string;
      readonly kind: Wait['kind'];
      readonly how: HowAnswered;
      readonly by?: Person;
      /** The note of an approval, for those who read it later. */
      readonly note?: string;
      /** The votes so far, while others are needed. */
      readonly votes?: number;
      /** The wait as this vote changed it: with another input, and what its tool says of that. */
      readonly wait?: Wait;
      readonly callId?: string;
    }
  /** An answer was not taken; the wait stays open. */
  | {
      readonly type: 'wait.refused';
      readonly waitId: string;
      readonly code: string;
      readonly reason: string;
      readonly by?: Person;
    }
  /** No answer came in time. */
  | { readonly type: 'wait.expired'; readonly waitId: string; readonly kind: Wait['kind']; readonly callId?: string }
  /** The wait is over without an answer: the run ended, or asks again because the call or its agent has changed. */
  | { readonly type: 'wait.withdrawn'; readonly waitId: string; readonly kind: Wait['kind']; readonly callId?: string }
  /** Nothing is left to do before one of the waits is over. `wakeAt`: the earliest time at which one ends by itself, ms. */
  | { readonly type: 'run.waiting'; readonly waits: number; readonly wakeAt?: number }
  /** The run works again. */
  | { readonly type: 'run.woken' }
  /**
   * The machine of a workflow took an event, and is in these states now. `step` counts its transitions. `took`: the ids of the
   * machine's transitions, those without an event that followed at once too; the first 32.
   */
  | {
      readonly type: 'workflow.transition';
      readonly step: number;
      readonly from: JsonValue;
      readonly to: JsonValue;
      readonly event: string;
      readonly took: readonly string[];
    }
  /** No state of the workflow takes this event, or it does not fit its schema (`error`): it is gone. */
  | {
      readonly type: 'workflow.ignored';
      readonly step: number;
      readonly event: string;
      readonly error?: ErrorData;
    }
  /** An event for another run (`to`: its actor, or the parent) did not arrive: the run has ended, is no workflow, or refuses it. */
  | {
      readonly type: 'workflow.undelivered';
      readonly step: number;
      readonly to: string;
      readonly event: string;
      readonly error: ErrorData;
    }
  /** The machine of a workflow emitted an event of its own (`emit`). */
  | { readonly type: 'workflow.emitted'; readonly step: number; readonly event: JsonValue }
  /** An action of the machine threw, after its transition was stored: the run continues. */
  | { readonly type: 'workflow.action-failed'; readonly name: string; readonly error: ErrorData }
  /** Another process has taken the run: this one records nothing more of it. */
  | { readonly type: 'lease.lost' }
  /** A save is stored, `ms` after it was asked for. */
  | { readonly type: 'checkpoint.saved'; readonly iteration: number; readonly ms: number }
  /** A save failed. */
  | { readonly type: 'checkpoint.failed'; readonly error: ErrorData }
  /** This consumer was too slow: `count` events before this one are missing for it, pieces of text first. */
  | { readonly type: 'events.dropped'; readonly count: number };

/** One event of a run. `seq` rises by 1, jumps forward at a resume, and never falls; `at` is the wall clock, ms. */
export type RunEvent = RunEventBody & { readonly runId: string; readonly seq: number; readonly at: number };
