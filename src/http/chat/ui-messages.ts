import type { ThreadMessage } from '../../index.ts';
import type { Message, ToolCallPart, ToolOutput } from '../../values/message.ts';
import { messageIdOfChunk } from './chunks.ts';
import { fileUrlOf, shownPart, textOfPart } from './step-content.ts';

/** A message of `useChat`, as a thread has it. */
export interface UiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly UiPart[];
}

/** A part of such a message. Its other fields depend on its type. */
export interface UiPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * Returns recorded messages of a thread as a page of `useChat` shows them: each message of a user, and one message for the answer
 * of a run. Parts with data of Pawl, and sources, are in the stream of a run only.
 * @param messages whole runs, in order
 */
export function uiMessagesOf(messages: readonly ThreadMessage[]): readonly UiMessage[] {
  const shown: UiMessage[] = [];
  let answer: Answer | undefined;
  for (const { id, runId, message } of messages) {
    if (answer?.runId !== runId) {
      if (answer) shown.push(answer.message);
      answer = undefined;
    }
    if (message.role === 'user' && !answer) shown.push({ id, role: 'user', parts: userParts(message) });
    else {
      answer ??= new Answer(runId);
      answer.add(message);
    }
  }
  if (answer) shown.push(answer.message);
  return shown;
}

function userParts({ content }: Extract<Message, { role: 'user' }>): UiPart[] {
  return content.flatMap((part): UiPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }];
    const url = fileUrlOf(part);
    const { mediaType, filename } = part;
    return url === undefined ? [] : [{ type: 'file', mediaType, url, ...(filename === undefined ? {} : { filename }) }];
  });
}

type Assistant = Extract<Message, { role: 'assistant' }>;

/** The answer of one run: its steps, with the outputs of their calls. */
class Answer {
  readonly runId: string;
  readonly #parts: UiPart[] = [];
  /** Where the newest call of an id stands. */
  readonly #calls = new Map<string, number>();
  #steered = 0;

  constructor(runId: string) {
    this.runId = runId;
  }

  get message(): UiMessage {
    return { id: messageIdOfChunk(this.runId), role: 'assistant', parts: this.#parts };
  }

  add(message: Message): void {
    if (message.role === 'assistant') this.#step(message);
    else if (message.role === 'user') this.#steer(message);
    else if (message.role === 'tool')
      for (const part of message.content) if (part.type === 'tool-result') this.#output(part.toolCallId, part.output);
  }

  #step({ content }: Assistant): void {
    const parts = content.flatMap(shownPart);
    if (parts.length > 0) this.#parts.push({ type: 'step-start' });
    for (const part of parts) {
      if (part.kind === 'call') this.#call(part.part);
      else if (part.kind !== 'whole') this.#parts.push({ type: part.kind, text: part.text, state: 'done' });
      else if ('toolCallId' in part.chunk) this.#result(part.chunk.toolCallId, part.chunk);
      else this.#parts.push({ ...part.chunk });
    }
  }

  #call({ toolCallId, toolName, input, providerExecuted }: ToolCallPart): void {
    this.#calls.set(toolCallId, this.#parts.length);
    const call = { type: `tool-${toolName}`, toolCallId, state: 'input-available', input };
    this.#parts.push(providerExecuted ? { ...call, providerExecuted: true } : call);
  }

  /** The output of a call that the model's provider ran. */
  #result(callId: string, chunk: object): void {
    const { type, output, errorText } = chunk as { readonly type: string; output?: unknown; errorText?: string };
    this.#change(
      callId,
      type === 'tool-output-error' ? { state: 'output-error', errorText } : { state: 'output-available', output },
    );
  }

  #output(callId: string, output: ToolOutput): void {
    if (output.type === 'execution-denied') {
      const why = output.reason === undefined ? {} : { reason: output.reason };
      this.#change(callId, { state: 'output-denied', approval: { id: `${callId}:rule`, approved: false, ...why } });
    } else if (output.type === 'error-text' || output.type === 'error-json')
      this.#change(callId, { state: 'output-error', errorText: textOfPart(output.value) });
    else this.#change(callId, { state: 'output-available', output: output.value });
  }

  #change(callId: string, fields: object): void {
    const at = this.#calls.get(callId);
    const part = at === undefined ? undefined : this.#parts[at];
    if (at !== undefined && part) this.#parts[at] = { ...part, ...fields };
  }

  /** A message that came while the run was at work. */
  #steer(message: Extract<Message, { role: 'user' }>): void {
    this.#steered += 1;
    const parts = message.content.flatMap((part) => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []));
    this.#parts.push({ type: 'steering-message', id: `${this.runId}:s${this.#steered}`, parts });
  }
}
