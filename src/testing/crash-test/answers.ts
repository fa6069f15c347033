import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { outcomeUnknown } from '../../run/open-step.ts';
import { isToolError, type Message, type ToolOutput } from '../../values/message.ts';

/** What a call came back to the model as. */
export interface CallAnswer {
  readonly input: unknown;
  /** What the model read of what went wrong; undefined = it succeeded, or nobody knows. */
  readonly failure: string | undefined;
}

/** A result in a record, with the message that asked for it. */
interface Result {
  readonly callId: string;
  readonly output: ToolOutput;
  readonly asking: Message | undefined;
}

/** The results that a record holds: those of finished steps, and those of the open one. */
export function* resultsIn({ messages, openStep }: RunCheckpoint): Iterable<Result> {
  let asking: Message | undefined;
  for (const message of messages) {
    if (message.role === 'assistant') asking = message;
    if (message.role !== 'tool') continue;
    for (const part of message.content) {
      if (part.type === 'tool-result' && part.output) yield { callId: part.toolCallId, output: part.output, asking };
    }
  }
  for (const { callId, result } of openStep?.calls ?? []) {
    if (result) yield { callId, output: result, asking: openStep?.message };
  }
}

export function answerOf({ callId, output, asking }: Result): CallAnswer {
  const parts = asking?.role === 'assistant' ? asking.content : [];
  const call = parts.find((part) => part.type === 'tool-call' && part.toolCallId === callId);
  return { input: call?.type === 'tool-call' ? call.input : undefined, failure: failureIn(output) };
}

function failureIn(output: ToolOutput): string | undefined {
  if (!isToolError(output)) return undefined;
  if (output.type === 'execution-denied') return output.reason ?? 'the tool call was denied';
  const text = output.type === 'error-json' ? JSON.stringify(output.value) : String(output.value);
  return text === outcomeUnknown ? undefined : text;
}
