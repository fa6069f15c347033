import { unread, type ViewPiece } from '../../run/journal/reply-view.ts';
import type { AssistantMessage, ToolCallPart, ToolResultPart } from '../../values/message.ts';
import type { UiChunk } from './ui-chunk.ts';

type Part = AssistantMessage['content'][number];
type TextKind = 'text' | 'reasoning';

/** A part of the step that the page has, or has begun to get. */
type Sent = SentText | SentCall;
interface SentText {
  readonly kind: TextKind;
  readonly block: number;
  text: string;
  isOpen: boolean;
}
interface SentCall {
  readonly kind: 'call';
  readonly block: number;
  readonly callId: string;
  readonly name: string;
  length: number;
}

/** A part of the recorded message that a page shows. */
type Shown =
  | { readonly kind: TextKind; readonly block: number; readonly text: string }
  | { readonly kind: 'call'; readonly block: number; readonly part: ToolCallPart }
  | { readonly kind: 'whole'; readonly chunk: UiChunk };

/** One tool call of the step, as the page knows it. */
export interface ShownCall {
  readonly callId: string;
  readonly name: string;
  input: unknown;
  /** The page has the whole input. */
  isWhole: boolean;
  /** The page has a preliminary output. */
  isPreliminary?: true;
  /** The approval that the page shows. */
  approval?: { readonly waitId: string; isSettled: boolean };
  isDone?: true;
}

/**
 * The model's message of one step on its way to a page: first its pieces, then the recorded message, which completes them. Text
 * is sent once; a recorded message that does not continue the pieces takes their place.
 */
export class StepContent {
  readonly step: number;
  readonly calls = new Map<string, ShownCall>();
  isRecorded = false;
  isFinished = false;
  /** The page has the boundary of this step. A step without any part has none. */
  isBegun = false;
  readonly #emit: (chunk: UiChunk) => void;
  #sent: Sent[] = [];
  /** A source may come before the message; the page shows it behind, where a later reader gets it as well. */
  #sources: UiChunk[] = [];

  constructor(step: number, emit: (chunk: UiChunk) => void) {
    this.step = step;
    this.#emit = emit;
  }

  /** Sends a chunk of this step, after its boundary. */
  send(chunk: UiChunk): void {
    if (!this.isBegun) this.#emit({ type: 'start-step' });
    this.isBegun = true;
    this.#emit(chunk);
  }

  /** A piece of text. What the page has already is left out. */
  text(piece: ViewPiece & { readonly kind: TextKind }): void {
    const { kind, block } = piece;
    const last = this.#sent.at(-1);
    const begun = last?.kind === kind && last.block === block ? last : undefined;
    const more = unread(begun?.text.length ?? 0, piece);
    if (this.isRecorded || more === '' || begun?.isOpen === false) return;
    if (!begun && this.#sent.some((sent) => sent.block >= block)) return;
    this.#extend(begun ?? this.#beginText(kind, block), more);
  }

  /** A piece of the arguments of a call. */
  input(piece: ViewPiece & Pick<SentCall, 'callId' | 'name'>): void {
    if (this.isRecorded) return;
    const { block, offset, callId, name } = piece;
    let begun = this.#sent.findLast((sent): sent is SentCall => sent.kind === 'call' && sent.callId === callId);
    if (!begun) {
      if (offset > 0 || this.calls.has(callId) || this.#sent.some((sent) => sent.block >= block)) return;
      this.#closeText();
      begun = { kind: 'call', block, callId, name, length: 0 };
      this.#sent.push(begun);
      this.#beginCall(callId, name);
    }
    const more = unread(begun.length, piece);
    if (more === '' || this.calls.get(callId)?.isWhole) return;
    begun.length += more.length;
    this.send({ type: 'tool-input-delta', toolCallId: callId, inputTextDelta: more });
  }

  /** The whole message, as it is recorded. */
  record(content: readonly Part[]): void {
    if (this.isRecorded) return;
    const shown = content.flatMap(shownPart);
    if (!this.#sent.every((sent, i) => isContinuedBy(sent, shown[i]))) this.reset();
    const begun = this.#sent.length;
    for (const [i, part] of shown.entries()) this.#complete(part, i < begun);
    this.#closeText();
    this.#sent = [];
    this.isRecorded = true;
    this.#sendSources();
  }

  /** A source of the message. */
  source(chunk: UiChunk): void {
    this.#sources.push(chunk);
    if (this.isRecorded) this.#sendSources();
  }

  /** Takes back what the page has of this step. */
  reset(): void {
    if (this.isBegun) this.#emit({ type: 'reset-step' });
    this.#sent = [];
    this.#sources = [];
    this.calls.clear();
  }

  /** No piece follows. */
  close(): void {
    this.#closeText();
    this.#sendSources();
  }

  finish(): void {
    this.close();
    if (this.isBegun && !this.isFinished) this.#emit({ type: 'finish-step' });
    this.isFinished = true;
  }

  /** A call of this step, whose whole input the page has from now on. */
  call({ callId, name, input }: Pick<ShownCall, 'callId' | 'name' | 'input'>): ShownCall {
    const known = this.calls.get(callId);
    if (known?.isWhole) return known;
    this.close();
    const call = known ?? this.#beginCall(callId, name);
    this.#available(call, input);
    return call;
  }

  #sendSources(): void {
    for (const chunk of this.#sources.splice(0)) this.send(chunk);
  }

  #beginCall(callId: string, name: string): ShownCall {
    const call: ShownCall = { callId, name, input: undefined, isWhole: false };
    this.calls.set(callId, call);
    this.send({ type: 'tool-input-start', toolCallId: callId, toolName: name });
    return call;
  }

  #available(call: ShownCall, input: unknown, byProvider = false): void {
    call.input = input;
    call.isWhole = true;
    const chunk = { type: 'tool-input-available', toolCallId: call.callId, toolName: call.name, input } as const;
    this.send(byProvider ? { ...chunk, providerExecuted: true } : chunk);
  }

  /** A recorded text is a piece that begins where the text does. */
  #complete(part: Shown, isBegun: boolean): void {
    if (!isBegun) this.#closeText();
    if (part.kind === 'whole') this.send(part.chunk);
    else if (part.kind !== 'call') this.text({ ...part, offset: 0 });
    else {
      const { toolCallId, toolName, input, providerExecuted } = part.part;
      const call = this.calls.get(toolCallId) ?? this.#beginCall(toolCallId, toolName);
      if (!call.isWhole) this.#available(call, input, providerExecuted === true);
    }
  }

  #beginText(kind: TextKind, block: number): SentText {
    this.#closeText();
    const sent = { kind, block, text: '', isOpen: true };
    this.#sent.push(sent);
    this.send({ type: `${kind}-start`, id: this.#idOf(block) });
    return sent;
  }

  #extend(sent: SentText, more: string): void {
    sent.text += more;
    this.send({ type: `${sent.kind}-delta`, id: this.#idOf(sent.block), delta: more });
  }

  #closeText(): void {
    const last = this.#sent.at(-1);
    if (!last || last.kind === 'call' || !last.isOpen) return;
    last.isOpen = false;
    this.send({ type: `${last.kind}-end`, id: this.#idOf(last.block) });
  }

  #idOf(block: number): string {
    return `${this.step}.${block}`;
  }
}

function isContinuedBy(sent: Sent, part: Shown | undefined): boolean {
  if (!part || part.kind === 'whole' || part.kind !== sent.kind || part.block !== sent.block) return false;
  if (part.kind === 'call')
    return sent.kind === 'call' && part.part.toolCallId === sent.callId && part.part.toolName === sent.name;
  if (sent.kind === 'call') return false;
  return sent.isOpen ? part.text.startsWith(sent.text) : part.text === sent.text;
}

/** The parts of a message that a page shows. Metadata of providers stays on the server. */
export function shownPart(part: Part, block: number): Shown[] {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part.text === '' ? [] : [{ kind: part.type, block, text: part.text }];
    case 'tool-call':
      return [{ kind: 'call', block, part }];
    case 'tool-result':
      return [{ kind: 'whole', chunk: providerResult(part) }];
    case 'file':
    case 'reasoning-file': {
      const url = fileUrlOf(part);
      return url === undefined ? [] : [{ kind: 'whole', chunk: { type: part.type, url, mediaType: part.mediaType } }];
    }
    case 'custom':
      return [{ kind: 'whole', chunk: { type: 'custom', kind: part.kind } }];
    default:
      return [];
  }
}

function providerResult({ toolCallId, output }: ToolResultPart): UiChunk {
  const byProvider = { toolCallId, providerExecuted: true } as const;
  if (output.type === 'error-text' || output.type === 'error-json')
    return { type: 'tool-output-error', ...byProvider, errorText: textOfPart(output.value) };
  const value = output.type === 'execution-denied' ? (output.reason ?? null) : output.value;
  return { type: 'tool-output-available', ...byProvider, output: value };
}

/** Returns the text of an error as the model read it. */
export function textOfPart(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the URL of a file; undefined for one that only its provider can read. */
export function fileUrlOf({
  data,
  mediaType,
}: Pick<Extract<Part, { type: 'file' }>, 'data' | 'mediaType'>): string | undefined {
  switch (data.type) {
    case 'url':
      return String(data.url);
    case 'data':
      return `data:${mediaType};base64,${String(data.data)}`;
    case 'text':
      return `data:${mediaType},${encodeURIComponent(data.text)}`;
    default:
      return undefined;
  }
}
