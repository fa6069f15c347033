import { Transcript } from '../run/transcript.ts';
import { isObject } from '../values/json.ts';
import type {
  AssistantMessage,
  Message,
  ToolCallPart,
  ToolMessage,
  ToolOutput,
  ToolResultPart,
} from '../values/message.ts';
import { keyOf, makerOf, unmarkedOptions } from '../values/message-mark.ts';
import { definableName } from '../values/tool-name.ts';
import { isForeign, type Vendor, vendorOf } from './vendor.ts';

/*
 * The messages of a transcript as the model that is asked takes them. A record keeps each message as it came; a provider
 * refuses reasoning of another one, ids and names that it does not allow, and texts of nothing.
 */

type AssistantPart = AssistantMessage['content'][number];
type Options = { readonly providerOptions?: unknown };

/** Sent where a person's message has neither a text nor a file: a conversation needs its turn. */
const NO_TEXT = '(no text)';
/** Most characters of an input or a result of a tool that another provider ran. */
const MAX_SHOWN_CHARS = 8_000;

/** The messages of one loop of a run for its model. Keeps what it made: a step costs as much as the messages that it adds. */
export class RequestView {
  readonly #vendor: Vendor;
  #seen: Transcript | readonly Message[] = [];
  readonly #sent: Message[] = [];
  /** ends[i] = how many messages are sent of the first i + 1. */
  readonly #ends: number[] = [];

  /** @param modelName `provider/modelId`, as records name the model @param key its account, where a list of models names one */
  constructor(modelName: string, key?: string) {
    const vendor = vendorOf(modelName);
    this.#vendor = key === undefined ? vendor : { ...vendor, key };
  }

  /**
   * Returns the messages as this model takes them: the same objects where nothing had to change. The list is valid until the
   * next request.
   */
  of(messages: Transcript | readonly Message[]): readonly Message[] {
    const same = sameIn(messages, this.#seen);
    if (same < this.#ends.length) {
      this.#ends.length = same;
      this.#sent.length = this.#ends.at(-1) ?? 0;
    }
    for (let i = same; i < messages.length; i++) {
      const shown = viewOf(messages.at(i) as Message, this.#vendor);
      if (shown) this.#sent.push(shown);
      this.#ends.push(this.#sent.length);
    }
    this.#seen = messages;
    return this.#sent;
  }
}

/** How many messages two lists have in common at their beginnings. */
function sameIn(messages: Transcript | readonly Message[], seen: Transcript | readonly Message[]): number {
  if (messages instanceof Transcript && seen instanceof Transcript && messages.continues(seen)) return seen.length;
  let same = 0;
  while (same < seen.length && same < messages.length && messages.at(same) === seen.at(same)) same += 1;
  return same;
}

/** Returns a message as a vendor takes it; undefined for an answer with nothing that it could read. */
export function viewOf(message: Message, vendor: Vendor): Message | undefined {
  if (message.role === 'assistant') return assistantView(message, vendor);
  const own = withoutForeign(message, vendor);
  if (own.role === 'tool') {
    const isAsItIs = own.content.every((part) => toolView(part, vendor) === part);
    return isAsItIs ? own : { ...own, content: own.content.map((part) => toolView(part, vendor)) };
  }
  if (own.role !== 'user') return own;
  const content = own.content.filter((part) => !isBlank(part)).map((part) => withoutForeign(part, vendor));
  return withContent(own, content.length > 0 ? content : [{ type: 'text' as const, text: NO_TEXT }]);
}

function toolView(part: ToolMessage['content'][number], vendor: Vendor): ToolMessage['content'][number] {
  return part.type === 'tool-result' ? resultView(part, vendor) : withoutForeign(part, vendor);
}

function assistantView(message: AssistantMessage, vendor: Vendor): AssistantMessage | undefined {
  const maker = makerOf(message);
  const isOwn = maker === undefined ? namesVendor(message, vendor) : isMadeBy(message, maker, vendor);
  const place = { message, vendor, isOwn };
  const shown: AssistantPart[] = [];
  // Reasoning belongs to what follows it: no provider takes an answer that ends with it.
  let end = 0;
  for (const part of message.content) {
    const view = partView(part, place);
    if (!view) continue;
    // Where the maker is known, its options stay as a whole, or go.
    shown.push(maker === undefined ? withoutForeign(view, vendor) : isOwn ? view : withoutOptions(view));
    if (!view.type.startsWith('reasoning')) end = shown.length;
  }
  if (end === 0) return undefined;
  shown.length = end;
  if (maker === undefined) return withContent(withoutForeign(message, vendor), shown);
  const content = isSameList(shown, message.content) ? message.content : shown;
  const providerOptions = isOwn ? unmarkedOptions(message) : undefined;
  return { role: 'assistant', content, ...(providerOptions ? { providerOptions } : {}) };
}

/** Ids and thoughts are valid for one account. */
function isMadeBy(message: AssistantMessage, maker: string, vendor: Vendor): boolean {
  return vendorOf(maker).name === vendor.name && keyOf(message) === vendor.key;
}

interface PartPlace {
  readonly message: AssistantMessage;
  readonly vendor: Vendor;
  readonly isOwn: boolean;
}

/** Returns a part as a vendor takes it, with all its options; undefined for one that it cannot read. */
function partView(part: AssistantPart, { message, vendor, isOwn }: PartPlace): AssistantPart | undefined {
  switch (part.type) {
    case 'text':
      return isBlank(part) && !(isOwn && isSigned(part)) ? undefined : part;
    case 'reasoning':
    case 'reasoning-file':
    case 'custom':
      return isOwn ? part : undefined;
    case 'tool-call':
      if (part.providerExecuted === true && !isOwn) return unansweredView(part, message);
      return named(part, vendor);
    case 'tool-result':
      return isOwn ? resultView(part, vendor) : { type: 'text', text: `${part.toolName}: ${shownOutput(part.output)}` };
    default:
      return part;
  }
}

/** A call that another provider ran: its result, which follows, says enough. */
function unansweredView(
  { toolCallId, toolName, input }: ToolCallPart,
  { content }: AssistantMessage,
): AssistantPart | undefined {
  const isAnswered = content.some((part) => part.type === 'tool-result' && part.toolCallId === toolCallId);
  return isAnswered ? undefined : { type: 'text', text: `${toolName} was called with ${shownValue(input)}` };
}

function shownOutput(output: ToolOutput): string {
  return shownValue(output.type === 'execution-denied' ? 'the call was denied' : output.value);
}

function shownValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS).toWellFormed()}…` : text;
}

/** Whether an answer without a mark has provider options of this vendor. */
function namesVendor(message: AssistantMessage, { namespaces }: Vendor): boolean {
  const names = ({ providerOptions }: Options) =>
    isObject(providerOptions) && Object.keys(providerOptions).some((name) => namespaces.has(name));
  return names(message) || message.content.some(names);
}

function isBlank(part: { readonly type: string; readonly text?: unknown }): boolean {
  return part.type === 'text' && typeof part.text === 'string' && part.text.trim() === '';
}

/** Google signs an empty text where a thought has nothing else to belong to, and wants it back. */
function isSigned({ providerOptions }: Options): boolean {
  const all = isObject(providerOptions) ? Object.values(providerOptions) : [];
  return all.some((options) => isObject(options) && typeof options.thoughtSignature === 'string');
}

function named<Part extends ToolCallPart | ToolResultPart>(part: Part, vendor: Vendor): Part {
  const toolCallId = vendor.callId(part.toolCallId);
  const toolName = definableName(part.toolName);
  const isSame = toolCallId === part.toolCallId && toolName === part.toolName;
  return isSame ? part : { ...part, toolCallId, toolName };
}

function resultView(part: ToolResultPart, vendor: Vendor): ToolResultPart {
  const own = withoutForeign(named(part, vendor), vendor);
  const output = outputView(own.output, vendor);
  return output === own.output ? own : { ...own, output };
}

function outputView(output: ToolOutput, vendor: Vendor): ToolOutput {
  const own = withoutForeign(output, vendor);
  if (own.type !== 'content') return own;
  const value = own.value.filter((part) => !isBlank(part)).map((part) => withoutForeign(part, vendor));
  if (value.length === 0) return { type: 'text', value: '' };
  return isSameList(value, own.value) ? own : { ...own, value };
}

function withoutForeign<T extends object>(value: T, vendor: Vendor): T {
  // Most values have none: a copy of each would cost more than all else here.
  const given = (value as Options).providerOptions;
  if (!isObject(given)) return value;
  const entries = Object.entries(given);
  const own = entries.filter(([namespace]) => !isForeign(namespace, vendor));
  if (own.length === entries.length) return value;
  return own.length > 0 ? { ...value, providerOptions: Object.fromEntries(own) } : withoutOptions(value);
}

function withoutOptions<T extends object>(value: T): T {
  if ((value as Options).providerOptions === undefined) return value;
  const { providerOptions: _, ...rest } = value as T & Options;
  return rest as T;
}

function withContent<M extends Exclude<Message, { role: 'system' }>>(message: M, content: M['content']): M {
  return isSameList(content, message.content) ? message : { ...message, content };
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}
