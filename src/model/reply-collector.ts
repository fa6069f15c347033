import type { LanguageModelV4StreamPart, LanguageModelV4ToolCall } from '@ai-sdk/provider';
import { readProperty, toErrorData } from '../run/error-data.ts';
import { ModelError } from '../run/errors.ts';
import { type AssistantMessage, enterMessage } from '../run/message.ts';
import type { ModelReply } from '../run/reply.ts';
import type { Usage } from '../run/usage.ts';
import { type ReplyPart, toolCallPart, toolResultPart, wholePart, withMetadata } from './reply-parts.ts';
import { brokenOff } from './retryable.ts';
import { tokenUsage } from './token-usage.ts';

type StreamPart<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>;
interface TextSlot {
  readonly type: 'text' | 'reasoning';
  text: string;
  metadata: unknown;
}
interface CallSlot {
  readonly type: 'call';
  readonly name: string;
  call?: LanguageModelV4ToolCall;
}
interface WholeSlot {
  readonly type: 'whole';
  part: ReplyPart;
}

/** Puts a stream's parts together into one reply. Parts stand in the order in which they began. */
export class ReplyCollector {
  readonly #slots: (TextSlot | CallSlot | WholeSlot)[] = [];
  readonly #texts = new Map<string, TextSlot>();
  // Most replies need none of these: they are made when they are first needed.
  #reasonings: Map<string, TextSlot> | undefined;
  /** Calls whose arguments are still on their way, by call id. */
  #unfinished: Map<string, CallSlot> | undefined;
  #results: Map<string, WholeSlot> | undefined;
  #finish: StreamPart<'finish'> | undefined;

  /** Whether the stream said that it is complete. */
  get isFinished(): boolean {
    return this.#finish !== undefined;
  }

  /** What the model reported that the reply cost, once it is complete. What cannot be read counts as nothing. */
  get usage(): Usage | undefined {
    return this.#finish && tokenUsage(readProperty(this.#finish, 'usage'));
  }

  /**
   * Takes one part in, and says whether it was content: keep-alives and metadata are not.
   * @throws {ModelError} for a part that ends the call
   */
  add(part: LanguageModelV4StreamPart): boolean {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#begin(part);
        return true;
      case 'text-delta':
      case 'reasoning-delta':
        return this.#extend(part);
      case 'text-end':
      case 'reasoning-end':
        this.#describe(this.#textSlots(part.type)?.get(part.id), part.providerMetadata);
        return true;
      case 'tool-input-start':
        this.#beginCall(part.id, part.toolName);
        return true;
      case 'tool-input-delta':
        if (!this.#unfinished?.has(part.id)) this.#beginCall(part.id, 'unknown');
        return part.delta !== '';
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
        this.#slots.push({ type: 'whole', part: wholePart(part) });
        // Providers announce a reply with parts of their own, long before its content comes.
        return part.type !== 'custom';
      case 'tool-approval-request':
        throw new ModelError(
          `the provider asks to approve tool call "${part.toolCallId}"; approvals are not supported`,
        );
      default:
        return part.type === 'source' || part.type === 'tool-input-end';
    }
  }

  #textSlots(type: string): Map<string, TextSlot> | undefined {
    return type.startsWith('text') ? this.#texts : this.#reasonings;
  }

  #begin(part: StreamPart<'text-start' | 'reasoning-start' | 'text-delta' | 'reasoning-delta'>): TextSlot {
    const type = part.type.startsWith('text') ? 'text' : 'reasoning';
    const slot: TextSlot = { type, text: '', metadata: part.providerMetadata };
    this.#slots.push(slot);
    if (type === 'reasoning') this.#reasonings ??= new Map();
    this.#textSlots(type)?.set(part.id, slot);
    return slot;
  }

  #extend(part: StreamPart<'text-delta' | 'reasoning-delta'>): boolean {
    const slot = this.#textSlots(part.type)?.get(part.id) ?? this.#begin(part);
    this.#describe(slot, part.providerMetadata);
    if (typeof part.delta === 'string') slot.text += part.delta;
    return part.delta !== '' || part.providerMetadata !== undefined;
  }

  /** The newest metadata of a block stands for the whole: a signature comes with its last part. */
  #describe(slot: TextSlot | undefined, metadata: unknown): void {
    if (slot !== undefined && metadata !== undefined) slot.metadata = metadata;
  }

  #beginCall(id: string, name: string): void {
    const slot: CallSlot = { type: 'call', name };
    this.#slots.push(slot);
    this.#unfinished ??= new Map();
    this.#unfinished.set(id, slot);
  }

  #addCall(call: LanguageModelV4ToolCall): void {
    const begun = this.#unfinished?.get(call.toolCallId);
    this.#unfinished?.delete(call.toolCallId);
    if (begun !== undefined) begun.call = call;
    else this.#slots.push({ type: 'call', name: call.toolName, call });
  }

  /** A preliminary result is replaced by the one that follows it. */
  #addResult(result: StreamPart<'tool-result'>): void {
    const part = toolResultPart(result);
    const earlier = this.#results?.get(result.toolCallId);
    if (earlier !== undefined) {
      earlier.part = part;
      return;
    }
    const slot: WholeSlot = { type: 'whole', part };
    this.#results ??= new Map();
    this.#results.set(result.toolCallId, slot);
    this.#slots.push(slot);
  }

  /**
   * The finished reply; its message has entered (see `enterMessage`).
   * @throws {ModelError} when the stream broke off, ended in an error, or holds what JSON cannot
   */
  reply(): ModelReply {
    if (this.#finish === undefined) throw brokenOff("the model's stream ended without a finish part");
    const finishReason = this.#finishReason(this.#finish.finishReason);
    for (const [id, { name }] of this.#unfinished ?? []) {
      const message = `the model's stream ended within the arguments of call "${id}" of tool "${name}"; it is not run`;
      // Where the reply ran into its length limit, the next one would too.
      throw finishReason === 'length' ? new ModelError(message) : brokenOff(message);
    }
    const message = enterMessage({ role: 'assistant', content: this.#content(finishReason === 'length') }, 'reply');
    return { message: message as AssistantMessage, finishReason, usage: tokenUsage(this.#finish.usage) };
  }

  #finishReason(reason: unknown): string {
    const unified = readProperty(reason, 'unified');
    if (unified !== 'error' && unified !== 'interrupted') return typeof unified === 'string' ? unified : 'other';
    const raw = readProperty(reason, 'raw');
    const message = `the model's reply ended with finish reason "${unified}"${typeof raw === 'string' ? ` (${raw})` : ''}`;
    throw unified === 'interrupted' ? brokenOff(message) : new ModelError(message);
  }

  #content(isCut: boolean): ReplyPart[] {
    const parts: ReplyPart[] = [];
    for (const slot of this.#slots) {
      if (slot.type === 'whole') parts.push(slot.part);
      else if (slot.type === 'call') {
        if (slot.call !== undefined) parts.push(toolCallPart(slot.call, isCut));
      } else if (slot.text !== '' || slot.metadata !== undefined) {
        parts.push(withMetadata({ type: slot.type, text: slot.text }, slot.metadata));
      }
    }
    return parts;
  }
}
