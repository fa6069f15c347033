import type { LanguageModelV4StreamPart, LanguageModelV4ToolCall } from '@ai-sdk/provider';
import type { ModelReply, RefusedCall } from '../run/reply.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';
import { frozenJson, isDeeperThan, MAX_DEPTH, MESSAGE_DEPTH } from '../values/json.ts';
import type { AssistantMessage, ToolCallPart } from '../values/message.ts';
import { printable } from '../values/texts/model-text.ts';
import { isToolName, recordedName } from '../values/tool-name.ts';
import type { Usage } from '../values/usage.ts';
import { cutAnswer, endOfAnswer, type Needed, noAnswer } from './answer.ts';
import { brokenOff } from './failure.ts';
import { type ReplyLimits, ReplySize } from './reply-limits.ts';
import { type ReplyPart, toolCallPart, toolResultPart, wholePart, withMetadata } from './reply-parts.ts';
import { type ReplyPiece, sourceOfPiece } from './reply-pieces.ts';

/** Replaces arguments that are too large in the transcript. Providers want an object. */
const TOO_LARGE = '{"omitted":"the arguments were too large"}';

/** Characters of a file's media type for an observer. */
const MAX_MEDIA_TYPE = 256;

type StreamPart<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>;
interface Slot {
  /** Its expected index in the content; undefined for a block that ended without content. */
  block: number | undefined;
  /** Whether an observer got a piece with that index. */
  isShown?: true;
}
interface TextSlot extends Slot {
  readonly type: 'text' | 'reasoning';
  text: string;
  metadata: unknown;
}
interface CallSlot extends Slot {
  readonly type: 'call';
  readonly name: string;
  /** Characters and bytes of the arguments that arrived piece by piece. */
  chars: number;
  bytes: number;
  /** The provider runs it. */
  isProviders?: boolean;
  call?: LanguageModelV4ToolCall;
  /** Why the call must not run. */
  why?: string | undefined;
}
interface WholeSlot extends Slot {
  readonly type: 'whole';
  part: ReplyPart;
  size: number;
}

/** Builds one reply from the parts of a model's stream. Parts keep the order in which they began. */
export class ReplyCollector {
  readonly #size: ReplySize;
  readonly #needs: Needed | undefined;
  readonly #slots: (TextSlot | CallSlot | WholeSlot)[] = [];
  readonly #texts = new Map<string, TextSlot>();
  // Most replies need none of these: they are made at first use.
  #reasonings: Map<string, TextSlot> | undefined;
  /** Calls whose arguments are still incomplete, by call id. */
  #unfinished: Map<string, CallSlot> | undefined;
  #results: Map<string, WholeSlot> | undefined;
  #finish: StreamPart<'finish'> | undefined;
  /** The index of the next part, if no block before it stays empty. */
  #nextBlock = 0;
  #piece: ReplyPiece | undefined;

  constructor(limits: ReplyLimits, needs?: Needed) {
    this.#size = new ReplySize(limits);
    this.#needs = needs;
  }

  /** Whether the stream said that it is complete. */
  get isFinished(): boolean {
    return this.#finish !== undefined;
  }

  /** The cost of the reply as the model reported it, once it is complete. Unreadable values count as zero. */
  get usage(): Usage | undefined {
    return this.#finish && tokenUsage(readProperty(this.#finish, 'usage'));
  }

  /** Returns what the last part was for an observer, once. */
  takePiece(): ReplyPiece | undefined {
    const piece = this.#piece;
    this.#piece = undefined;
    return piece;
  }

  /**
   * Adds one part, and returns whether it was content: keep-alives and metadata are not.
   * @throws {MODEL} for a part that ends the call
   * @throws {REPLY_TOO_LARGE} when a limit is passed
   */
  add(part: LanguageModelV4StreamPart): boolean {
    switch (part.type) {
      // Most parts are these.
      case 'text-delta':
      case 'reasoning-delta':
        return this.#extend(part);
      case 'text-start':
      case 'reasoning-start':
        this.#begin(part);
        return true;
      case 'text-end':
      case 'reasoning-end':
        this.#endText(this.#textSlots(part.type)?.get(part.id), part.providerMetadata);
        return true;
      case 'tool-input-start':
        this.#beginCall(part.id, part.toolName).isProviders = part.providerExecuted === true;
        return true;
      case 'tool-input-delta':
        return this.#extendCall(part);
      case 'error':
        throw new ModelError(`the model's stream reported: ${toErrorData(part.error).message}`, { cause: part.error });
      case 'finish':
        this.#finish = part;
        return true;
      default:
        return this.#addWhole(part);
    }
  }

  #addWhole(part: LanguageModelV4StreamPart): boolean {
    switch (part.type) {
      case 'tool-call':
        this.#addCall(part);
        return true;
      case 'tool-result':
        this.#addResult(part);
        return true;
      case 'file':
      case 'reasoning-file':
      case 'custom':
        this.#addPart(part);
        // Providers announce a reply with parts of their own, long before its content arrives.
        return part.type !== 'custom';
      case 'tool-approval-request':
        throw noAnswer(
          `the provider asks to approve tool call "${printable(part.toolCallId)}"; approvals are not supported`,
        );
      case 'source':
        this.#size.part(part.id);
        this.#size.chars(this.#size.sizeOf(part));
        this.#addSource(part);
        return true;
      default:
        return part.type === 'tool-input-end';
    }
  }

  #addPart(part: StreamPart<'file' | 'reasoning-file' | 'custom'>): void {
    this.#size.part(undefined);
    const size = this.#size.sizeOf(part);
    this.#size.chars(size);
    const slot: WholeSlot = { type: 'whole', part: wholePart(part), size, block: undefined };
    this.#push(slot);
    if (part.type === 'custom' || typeof part.mediaType !== 'string') return;
    this.#piece = { type: 'file', block: this.#show(slot), mediaType: part.mediaType.slice(0, MAX_MEDIA_TYPE) };
  }

  #addSource(part: StreamPart<'source'>): void {
    const source = sourceOfPiece(part);
    if (source !== undefined) this.#piece = { type: 'source', source };
  }

  #push(slot: TextSlot | CallSlot | WholeSlot): void {
    slot.block = this.#nextBlock++;
    this.#slots.push(slot);
  }

  /** Returns the index of a block for a piece of it. A block that was taken for empty gets one at the end. */
  #show(slot: Slot): number {
    slot.isShown = true;
    slot.block ??= this.#nextBlock++;
    return slot.block;
  }

  /** An empty block has no part in the message; its index is free if none was given out after it. */
  #endText(slot: TextSlot | undefined, metadata: unknown): void {
    this.#describe(slot, metadata);
    if (slot?.block === undefined) return;
    if (slot.isShown) this.#piece = { type: 'end', block: slot.block };
    else if (isEmpty(slot) && slot.block === this.#nextBlock - 1) {
      this.#nextBlock = slot.block;
      slot.block = undefined;
    }
  }

  #textSlots(type: string): Map<string, TextSlot> | undefined {
    return type.startsWith('text') ? this.#texts : this.#reasonings;
  }

  #begin(part: StreamPart<'text-start' | 'reasoning-start' | 'text-delta' | 'reasoning-delta'>): TextSlot {
    const type = part.type.startsWith('text') ? 'text' : 'reasoning';
    this.#size.part(part.id);
    const slot: TextSlot = { type, text: '', metadata: undefined, block: undefined };
    this.#describe(slot, part.providerMetadata);
    this.#push(slot);
    if (type === 'reasoning') this.#reasonings ??= new Map();
    this.#textSlots(type)?.set(part.id, slot);
    return slot;
  }

  #extend(part: StreamPart<'text-delta' | 'reasoning-delta'>): boolean {
    const slots = part.type === 'text-delta' ? this.#texts : this.#reasonings;
    const slot = slots?.get(part.id) ?? this.#begin(part);
    if (part.providerMetadata !== undefined) this.#describe(slot, part.providerMetadata);
    if (typeof part.delta === 'string') {
      this.#size.chars(part.delta.length);
      if (part.delta !== '') {
        const { type } = slot;
        this.#piece = { type, block: this.#show(slot), offset: slot.text.length, text: part.delta };
      }
      slot.text += part.delta;
    }
    return part.delta !== '' || part.providerMetadata !== undefined;
  }

  /** The newest metadata of a block replaces older ones: a signature comes with its last part. */
  #describe(slot: TextSlot | undefined, metadata: unknown): void {
    if (slot === undefined || metadata === undefined || metadata === slot.metadata) return;
    this.#size.chars(
      this.#size.sizeOf(metadata) - (slot.metadata === undefined ? 0 : this.#size.sizeOf(slot.metadata)),
    );
    slot.metadata = metadata;
  }

  #beginCall(id: string, name: string): CallSlot {
    this.#size.call(id, name);
    const slot: CallSlot = { type: 'call', name, chars: 0, bytes: 0, block: undefined };
    this.#push(slot);
    this.#unfinished ??= new Map();
    this.#unfinished.set(id, slot);
    return slot;
  }

  /** The pieces are counted and not kept: the finished call has the whole arguments. */
  #extendCall({ id, delta }: StreamPart<'tool-input-delta'>): boolean {
    const slot = this.#unfinished?.get(id) ?? this.#beginCall(id, 'unknown');
    if (typeof delta !== 'string') return true;
    this.#size.chars(delta.length);
    if (delta !== '' && typeof id === 'string' && !slot.isProviders) {
      const [block, offset, name] = [this.#show(slot), slot.chars, recordedName(slot.name)];
      this.#piece = { type: 'tool-input', block, offset, callId: id, name, text: delta };
    }
    slot.chars += delta.length;
    slot.bytes += Buffer.byteLength(delta);
    return delta !== '';
  }

  #addCall(call: LanguageModelV4ToolCall): void {
    const begun = this.#unfinished?.get(call.toolCallId);
    this.#unfinished?.delete(call.toolCallId);
    if (begun === undefined) this.#size.call(call.toolCallId, call.toolName);
    const slot: CallSlot = begun ?? { type: 'call', name: call.toolName, chars: 0, bytes: 0, block: undefined };
    if (begun === undefined) this.#push(slot);
    else if (slot.isShown && slot.block !== undefined) this.#piece = { type: 'end', block: slot.block };
    // The pieces that arrived before are already counted.
    this.#size.chars(Math.max(0, this.#size.sizeOf(call.input) - slot.chars));
    if (call.providerMetadata !== undefined) this.#size.chars(this.#size.sizeOf(call.providerMetadata));
    const isOurs = call.providerExecuted !== true;
    const whyTooLarge = isOurs ? this.#size.refusalOf(call.input, slot.bytes) : undefined;
    slot.why = whyTooLarge ?? (isOurs ? whyMisnamed(call.toolName) : undefined);
    slot.call = whyTooLarge === undefined ? call : { ...call, input: TOO_LARGE };
  }

  /** A preliminary result is replaced by the one that follows it. */
  #addResult(result: StreamPart<'tool-result'>): void {
    const part = toolResultPart(result);
    const size = this.#size.sizeOf(result);
    const earlier = this.#results?.get(result.toolCallId);
    this.#size.chars(size - (earlier?.size ?? 0));
    if (earlier !== undefined) {
      Object.assign(earlier, { part, size });
      return;
    }
    this.#size.part(undefined);
    const slot: WholeSlot = { type: 'whole', part, size, block: undefined };
    this.#results ??= new Map();
    this.#results.set(result.toolCallId, slot);
    this.#push(slot);
  }

  /**
   * Returns the finished reply; its message is deep-frozen.
   * @throws {MODEL} when the stream broke off, is no answer (see `endOf`), or holds a value that JSON cannot
   * @throws {CONTENT_REFUSED} when the provider withheld the whole answer
   */
  reply(): ModelReply {
    if (this.#finish === undefined) throw brokenOff("the model's stream ended without a finish part");
    const unified = unifiedReason(this.#finish.finishReason);
    for (const [id, { name }] of this.#unfinished ?? []) {
      const message = `the model's stream ended within the arguments of call "${printable(id)}" of tool "${printable(name)}"; it is not run`;
      // If the reply reached its length limit, the next one would often too.
      throw unified === 'length' ? cutAnswer(message) : brokenOff(message);
    }
    const content = this.#content(unified === 'length');
    const message = frozenJson({ role: 'assistant', content }, 'reply', MESSAGE_DEPTH) as unknown as AssistantMessage;
    const raw = readProperty(this.#finish.finishReason, 'raw');
    const refused = this.#refused();
    return {
      message,
      ...endOfAnswer(message, { unified, raw, needs: this.#needs }),
      usage: tokenUsage(this.#finish.usage),
      ...(refused.length > 0 ? { refused } : {}),
    };
  }

  #refused(): RefusedCall[] {
    const calls = this.#slots.filter(
      (slot) => slot.type === 'call' && slot.call !== undefined && slot.call.providerExecuted !== true,
    ) as CallSlot[];
    return calls.flatMap(({ why }, position) => (why === undefined ? [] : { position, why }));
  }

  #content(isCut: boolean): ReplyPart[] {
    const parts: ReplyPart[] = [];
    for (const slot of this.#slots) {
      if (slot.isShown && slot.block !== parts.length) this.#piece = { type: 'void' };
      if (slot.type === 'whole') parts.push(slot.part);
      else if (slot.type === 'call') {
        if (slot.call !== undefined) parts.push(callPart(slot, slot.call, isCut));
      } else if (!isEmpty(slot)) {
        parts.push(withMetadata({ type: slot.type, text: slot.text }, slot.metadata));
      }
    }
    return parts;
  }
}

/** The AI SDK's word for how the reply ended. @throws {MODEL} when the stream was interrupted */
function unifiedReason(reason: unknown): string {
  const unified = readProperty(reason, 'unified');
  if (unified === 'interrupted') throw brokenOff('the model\'s reply ended with finish reason "interrupted"');
  return typeof unified === 'string' ? unified : 'other';
}

function isEmpty({ text, metadata }: TextSlot): boolean {
  return text === '' && metadata === undefined;
}

/** A call whose arguments are nested too deep does not run. The transcript holds a note in their place. */
function callPart(slot: CallSlot, call: LanguageModelV4ToolCall, isCut: boolean): ToolCallPart {
  const part = toolCallPart(call, isCut);
  // This many levels need at least twice as many characters: most arguments need no walk.
  const isShort = typeof call.input === 'string' && call.input.length <= 2 * MAX_DEPTH;
  if (isShort || part.providerExecuted === true || !isDeeperThan(MAX_DEPTH, part.input)) return part;
  slot.why ??= `the arguments are nested deeper than ${MAX_DEPTH} levels; send flatter ones`;
  return { ...part, input: { omitted: 'the arguments were nested too deep' } };
}

/**
 * Returns why a call of this name does not run. The transcript has the name as it came, a request another one that every
 * provider takes.
 */
function whyMisnamed(name: unknown): string | undefined {
  if (isToolName(name)) return undefined;
  return `"${printable(name)}" is not a tool name: it takes 1 to 128 of the characters A-Z a-z 0-9 _ . : -; call a listed tool`;
}

/**
 * The usage that a model reported, as a run counts it. An absent or negative value, or one that is not a number, counts as 0.
 */
function tokenUsage(reported: unknown): Usage {
  const input = readProperty(reported, 'inputTokens');
  const output = readProperty(reported, 'outputTokens');
  return {
    inputTokens: count(input, 'total'),
    outputTokens: count(output, 'total'),
    reasoningTokens: count(output, 'reasoning'),
    cacheReadTokens: count(input, 'cacheRead'),
    cacheWriteTokens: count(input, 'cacheWrite'),
  };
}

function count(tokens: unknown, key: string): number {
  const value = readProperty(tokens, key);
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0;
}
