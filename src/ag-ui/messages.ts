import { createHash } from 'node:crypto';
import { isObject } from '../values/json.ts';
import type { Message, ToolOutput } from '../values/message.ts';
import type { AgUiMessage } from './protocol.ts';

type UserPart = Extract<Message, { readonly role: 'user' }>['content'][number];
type AssistantPart = Extract<Message, { readonly role: 'assistant' }>['content'][number];
type ContentPart = Exclude<Extract<AgUiMessage, { readonly role: 'tool' }>['content'], string>[number];
type MediaSource = Extract<ContentPart, { readonly type: 'image' }>['source'];

/** The messages that one part of a model's message becomes: itself, and the result of a call behind it. */
type Slot = { readonly message: AgUiMessage; result?: AgUiMessage };

/** A message of a conversation, and the run that recorded it. */
export interface RecordedMessage {
  /** The id with which a user message was posted. */
  readonly id: string;
  readonly runId: string;
  readonly message: Message;
}

/** A step of a run: the number is that of the run's events. */
export interface StepOfRun {
  readonly runId: string;
  readonly step: number;
}

/** Longer call ids are replaced by their hash: each event of a call names it. */
const LONGEST_CALL_ID = 128;

/**
 * Returns the id of a block of a model's message: each text, and each reasoning, is a message of its own. The id is the same in
 * each stream, so that a reader never has a message twice.
 */
export function blockId({ runId, step }: StepOfRun, block: number): string {
  return `${runId}:${step}.${block}`;
}

/** Returns the id of a tool call, and of the message that holds it. Models use the same id again in another run, and in another step. */
export function callIdOfMessage({ runId, step }: StepOfRun, callId: string): string {
  return `${runId}:${step}:call:${shortId(callId)}`;
}

/** Returns the id of the message with a call's result. */
export function resultIdOf({ runId, step }: StepOfRun, callId: string): string {
  return `${runId}:${step}:result:${shortId(callId)}`;
}

function shortId(callId: string): string {
  return callId.length <= LONGEST_CALL_ID ? callId : createHash('sha256').update(callId).digest('hex');
}

/** Returns a conversation as a reader of the protocol has it once all of it has been streamed. */
export function agUiMessagesOf(recorded: readonly RecordedMessage[]): AgUiMessage[] {
  const messages: AgUiMessage[] = [];
  const steps = new Map<string, number>();
  let slots: Slot[] = [];
  let at: StepOfRun = { runId: '', step: 0 };
  const flush = () => {
    for (const { message, result } of slots) messages.push(message, ...(result ? [result] : []));
    slots = [];
  };
  for (const { id, runId, message } of recorded) {
    if (message.role === 'tool') {
      addResults(slots, at, message.content);
      continue;
    }
    flush();
    if (message.role === 'user') messages.push({ id, role: 'user', content: userContent(message.content) });
    else if (message.role === 'assistant') {
      at = { runId, step: (steps.get(runId) ?? 0) + 1 };
      steps.set(runId, at.step);
      slots = stepSlots(at, message.content);
    }
  }
  flush();
  return messages;
}

/** Returns the messages of one step: its texts, its reasoning, its calls, and the results that the provider gave itself. */
export function stepMessages(step: StepOfRun, content: readonly AssistantPart[]): AgUiMessage[] {
  return stepSlots(step, content).flatMap(({ message, result }) => (result ? [message, result] : [message]));
}

function stepSlots(step: StepOfRun, content: readonly AssistantPart[]): Slot[] {
  const slots: Slot[] = [];
  for (const [block, part] of content.entries()) {
    const id = blockId(step, block);
    if (part.type === 'text' && part.text !== '')
      slots.push({ message: { id, role: 'assistant', content: part.text } });
    else if (part.type === 'reasoning' && part.text !== '')
      slots.push({ message: { id, role: 'reasoning', content: part.text } });
    else if (part.type === 'tool-call') slots.push({ message: callMessage(step, part) });
    else if (part.type === 'tool-result') addResults(slots, step, [part]);
  }
  return slots;
}

/** The message that holds one call: its result follows it at once, whichever call ends first. */
export function callMessage(
  step: StepOfRun,
  { toolCallId, toolName, input }: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown },
): AgUiMessage {
  const id = callIdOfMessage(step, toolCallId);
  return {
    id,
    role: 'assistant',
    toolCalls: [{ id, type: 'function', function: { name: toolName, arguments: argumentsOf(input) } }],
  };
}

/** Returns the arguments of a call as text. Arguments that are not JSON are stored as the text that the model sent. */
export function argumentsOf(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input) ?? '');
}

function addResults(
  slots: Slot[],
  step: StepOfRun,
  parts: readonly { readonly type: string; readonly toolCallId?: string; readonly output?: ToolOutput }[],
): void {
  for (const { type, toolCallId, output } of parts) {
    if (type !== 'tool-result' || toolCallId === undefined || !output) continue;
    const slot = slots.find(({ message }) => message.id === callIdOfMessage(step, toolCallId));
    if (slot) slot.result ??= resultMessage(step, toolCallId, output);
  }
}

/** The message with the result of a call. */
export function resultMessage(
  step: StepOfRun,
  callId: string,
  output: ToolOutput,
): Extract<AgUiMessage, { readonly role: 'tool' }> {
  return {
    id: resultIdOf(step, callId),
    role: 'tool',
    toolCallId: callIdOfMessage(step, callId),
    content: resultContent(output),
    ...resultMetadata(output),
  };
}

/** Marks a failed or denied call: the protocol has no event that says so. */
function resultMetadata({ type }: ToolOutput): { metadata?: { pawl: { status: 'failed' | 'denied' } } } {
  if (type === 'execution-denied') return { metadata: { pawl: { status: 'denied' } } };
  return type.startsWith('error') ? { metadata: { pawl: { status: 'failed' } } } : {};
}

/** The result as the model read it. */
function resultContent(output: ToolOutput): string | ContentPart[] {
  if (output.type === 'execution-denied') return output.reason ?? 'The call was denied.';
  if (output.type === 'text' || output.type === 'error-text') return output.value;
  if (output.type !== 'content') return JSON.stringify(output.value);
  return output.value.flatMap((part): ContentPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }];
    return part.type === 'file' ? filePart(part) : [];
  });
}

function userContent(content: readonly UserPart[]): string | ContentPart[] {
  const [first, second] = content;
  if (first?.type === 'text' && second === undefined) return first.text;
  return content.flatMap((part): ContentPart[] =>
    part.type === 'text' ? [{ type: 'text', text: part.text }] : filePart(part),
  );
}

/** A file of a message: stored as base64, or as a URL. */
function filePart({ mediaType, data }: { readonly mediaType: string; readonly data: unknown }): ContentPart[] {
  const source = sourceOf(mediaType, data);
  if (!source) return [];
  const kind = mediaType.split('/', 1)[0];
  const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document';
  return [{ type, source }];
}

function sourceOf(mimeType: string, data: unknown): MediaSource | undefined {
  if (typeof data === 'string') return { type: 'data', value: data, mimeType };
  if (!isObject(data)) return undefined;
  if (data.type === 'data' && typeof data.data === 'string') return { type: 'data', value: data.data, mimeType };
  if (data.type === 'url' && typeof data.url === 'string') return { type: 'url', value: data.url, mimeType };
  if (data.type !== 'text' || typeof data.text !== 'string') return undefined;
  return { type: 'data', value: Buffer.from(data.text).toString('base64'), mimeType };
}
