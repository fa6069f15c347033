import type {
  ErrorData,
  FinishReason,
  JsonObject,
  JsonValue,
  Labels,
  ListedStatus,
  Message,
  RunStatus,
  Spend,
  ToolEffect,
  ToolOutput,
  Usage,
} from '../index.ts';
import { stepPlaces } from '../record/steps.ts';
import { toolCallsOf, toolResultsOf } from '../values/message.ts';
import { markOf } from '../values/message-mark.ts';
import { noUsage } from '../values/usage.ts';

/** A tool call of a step. */
export interface RecordedCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonValue;
  /** As the transcript has it: `{ type, value }`. */
  readonly output: ToolOutput;
  readonly effect: ToolEffect;
  /** The run that the call began. */
  readonly childRunId?: string;
}

/** One answer of the model, with its calls and their results. */
export interface RecordedStep {
  /** The name of its phase; absent = the agent has no phases. */
  readonly phase?: string;
  /** What was put before the model since its last answer: steered texts, nudges of a critic, the request to repair an answer. */
  readonly before: readonly Message[];
  readonly message: Message;
  /** `provider/modelId`; '' = not recorded. */
  readonly model: string;
  /** Its tokens, those of failed attempts included. */
  readonly usage: Usage;
  /** From the first attempt to the whole answer. */
  readonly ms: number;
  readonly calls: readonly RecordedCall[];
}

/** A run as plain JSON: `readRun`, the files of `exportRuns` and the reports of `replay` have this form. */
export interface RecordedRun {
  readonly runId: string;
  readonly agentId: string;
  /** How it ended; of a run that has not ended where it is. */
  readonly status: Exclude<RunStatus, 'interrupted'> | Exclude<ListedStatus, 'quarantined'> | 'queued';
  readonly prompt: string;
  readonly callerId: string;
  readonly labels: Labels;
  /** The host's values for its tools. */
  readonly inputs: JsonObject;
  /** The conversation before its prompt: `invocation.history`, or the earlier turns of its thread. */
  readonly earlier: readonly Message[];
  /** Its own messages, from its prompt on, those of all phases in their order. */
  readonly messages: readonly Message[];
  readonly steps: readonly RecordedStep[];
  /** The answer; of a run that did not succeed its last text, and '' of one that has not ended. */
  readonly output: string;
  readonly data?: JsonValue;
  readonly error?: ErrorData;
  readonly finishReason?: FinishReason;
  /** The tokens of the whole run: those of its steps, and of what brought no step (a failed call, an open step). */
  readonly usage: Usage;
  readonly spend?: Spend;
  /** Steps that a critic, or a retry, has allowed beyond the limit of the agent; absent = none. */
  readonly raisedSteps?: number;
  /** The run whose first `at` steps it begins with. Its own usage is that of the steps after them. */
  readonly forkedFrom?: { readonly runId: string; readonly at: number; readonly edited?: true };
  /** The newest retries of the run, the last one last: when, after how many steps, and how the run had ended. */
  readonly retries?: readonly {
    readonly at: number;
    readonly steps: number;
    readonly error: { readonly code: string };
  }[];
  /** The call that began the run. */
  readonly parent?: { readonly runId: string; readonly callId: string };
  /** It came from a file of exported runs. */
  readonly imported?: true;
}

/** Where the steps of a run are read from. */
export interface StepSource {
  readonly messages: readonly Message[];
  /** The index of the first message after the opening. */
  readonly from: number;
  /** Where each phase begins, and its name. */
  readonly phases: readonly { readonly from: number; readonly name: string }[];
  /** Returns the id of the run that a call of a step (counted from 0) has begun. */
  readonly childOf: (call: Pick<RecordedCall, 'id' | 'name' | 'input'>, step: number) => string | undefined;
}

const effects: { readonly [letter: string]: ToolEffect } = { r: 'read', i: 'idempotent', o: 'once' };

/** Returns the whole steps of a conversation. A call without a result is in none of them. */
export function stepsOf({ messages, from, phases, childOf }: StepSource): readonly RecordedStep[] {
  let last = from;
  return stepPlaces(messages, from).map(({ at, end }, step) => {
    const before = messages.slice(last, at);
    last = end;
    const message = messages[at] as Message;
    const results = new Map(
      messages
        .slice(at + 1, end)
        .flatMap(toolResultsOf)
        .map(({ toolCallId, output }) => [toolCallId, output]),
    );
    const mark = markOf(message);
    const calls = toolCallsOf(message).flatMap(({ toolCallId: id, toolName: name, input }, i): RecordedCall[] => {
      const output = results.get(id);
      if (output === undefined) return [];
      const effect = effects[mark?.effects?.[i] ?? (mark ? 'r' : 'o')] ?? 'once';
      const made = { id, name, input: (input ?? null) as JsonValue, output, effect };
      const childRunId = childOf(made, step);
      return [childRunId === undefined ? made : { ...made, childRunId }];
    });
    const phase = phases.findLast((each) => each.from <= at)?.name;
    return {
      ...(phase === undefined ? {} : { phase }),
      ...{ before, message, model: mark?.model ?? '', usage: mark?.usage ?? noUsage, ms: mark?.ms ?? 0, calls },
    };
  });
}
