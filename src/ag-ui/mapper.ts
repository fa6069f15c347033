import type { FinishReason, JsonValue, RunEvent, Usage } from '../index.ts';
import { unread } from '../run/journal/reply-view.ts';
import { blockId, callIdOfMessage, callMessage, resultMessage, type StepOfRun, stepMessages } from './messages.ts';
import type { AgUiEvent, AgUiMessage } from './protocol.ts';
import type { AgUiReader } from './reader.ts';

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { readonly type: Type }>;

/** An open message of the stream: the reader still gets pieces of it. */
interface Open {
  readonly step: number;
  readonly kind: 'text' | 'reasoning' | 'call';
}

/**
 * Converts the events of one run to events of the protocol. It has no input or output of its own: events go in, events come out.
 * What the reader has already is not sent again, so a stream may begin at the first event of its run.
 */
export class Mapper {
  readonly #runId: string;
  readonly #reader: AgUiReader;
  readonly #open = new Map<string, Open>();
  #step: number | undefined;
  /** The calls without a result, by their ids in the run; a progress report names no step. */
  readonly #calls = new Map<string, number>();
  /** The usage of the whole run, as far as its steps are over. */
  usage: Usage | undefined;
  /** How the last step's answer ended; undefined after a step with calls. */
  finishReason: FinishReason | undefined;

  /** @param runId the id of the run in its executor */
  constructor(runId: string, reader: AgUiReader) {
    this.#runId = runId;
    this.#reader = reader;
  }

  /** Returns what the reader gets for one event. */
  map(event: RunEvent): AgUiEvent[] {
    switch (event.type) {
      case 'step.started':
        return this.#enter(event.step);
      case 'model.delta':
        return this.#delta(event);
      case 'tool.input':
        return this.#input(event);
      case 'step.snapshot':
        return this.#snapshot(event);
      case 'tool.started':
        return this.#call(event, event.input);
      case 'tool.progress':
        return this.#progress(event);
      case 'tool.done':
        return event.isLate ? [] : this.#done(event);
      case 'wait.opened':
        return this.#waits(event);
      case 'step.done':
        return this.#leave(event);
      case 'step.reset':
        return this.#reset(event.step);
      default:
        return [];
    }
  }

  /** Ends each open message and the open step, so that the run can finish. */
  close(): AgUiEvent[] {
    const ended = this.#endAll();
    if (this.#step === undefined) return ended;
    ended.push({ type: 'STEP_FINISHED', stepName: nameOf(this.#step) });
    this.#step = undefined;
    return ended;
  }

  #of(step: number): StepOfRun {
    return { runId: this.#runId, step };
  }

  /** Begins a step. A step that is tried again is the same step. */
  #enter(step: number): AgUiEvent[] {
    if (this.#step === step) return [];
    const ended = this.close();
    this.#step = step;
    return [...ended, { type: 'STEP_STARTED', stepName: nameOf(step) }];
  }

  #delta(piece: EventOf<'model.delta'>): AgUiEvent[] {
    const { step, kind, block } = piece;
    const id = blockId(this.#of(step), block);
    const had = this.#reader.find(id);
    const rest = unread(textOf(had).length, piece);
    if (rest === '') return [];
    const begun = this.#begin(id, { step, kind });
    if (!had) this.#reader.add({ id, role: kind === 'text' ? 'assistant' : 'reasoning', content: '' });
    this.#reader.extend(id, rest);
    return [...begun, pieceOf(kind, id, rest)];
  }

  #input(piece: EventOf<'tool.input'>): AgUiEvent[] {
    const { step, callId, name, offset } = piece;
    const id = callIdOfMessage(this.#of(step), callId);
    const had = this.#reader.find(id);
    const rest = unread(textOf(had).length, piece);
    // The first piece announces a call, also an empty one.
    if (rest === '' && (had || offset > 0)) return [];
    const begun = this.#begin(id, { step, kind: 'call' }, name);
    if (!had) this.#reader.add(callMessage(this.#of(step), { toolCallId: callId, toolName: name, input: '' }));
    this.#calls.set(callId, step);
    if (rest === '') return begun;
    this.#reader.extend(id, rest);
    return [...begun, pieceOf('call', id, rest)];
  }

  /** Opens a message, in its step. Texts end where another message begins; calls may arrive side by side. */
  #begin(id: string, open: Open, toolCallName = ''): AgUiEvent[] {
    if (this.#open.has(id)) return [];
    const begun = this.#enter(open.step);
    for (const [other, { kind }] of this.#open) if (kind !== 'call') begun.push(...this.#end(other));
    this.#open.set(id, open);
    if (open.kind === 'text') return [...begun, { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }];
    if (open.kind === 'call') return [...begun, { type: 'TOOL_CALL_START', toolCallId: id, toolCallName }];
    const start = { type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' } as const;
    return [...begun, { type: 'REASONING_START', messageId: id }, start];
  }

  #end(id: string): AgUiEvent[] {
    const kind = this.#open.get(id)?.kind;
    this.#open.delete(id);
    if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId: id }];
    if (kind === 'call') return [{ type: 'TOOL_CALL_END', toolCallId: id }];
    const ends = ['REASONING_MESSAGE_END', 'REASONING_END'] as const;
    return ends.map((type): AgUiEvent => ({ type, messageId: id }));
  }

  #endAll(): AgUiEvent[] {
    return [...this.#open.keys()].flatMap((id) => this.#end(id));
  }

  /**
   * A recorded step. A reader who has none of it gets each message whole, one with its pieces what they lack. Where the record
   * differs from the pieces, for example in the id of a call, a snapshot puts the reader right.
   */
  #snapshot({ step, content }: EventOf<'step.snapshot'>): AgUiEvent[] {
    const recorded = stepMessages(this.#of(step), content as Parameters<typeof stepMessages>[1]);
    const said = recorded.filter(({ role }) => role !== 'tool');
    const all = this.#reader.messages;
    const had = all.filter(({ id, role }) => role !== 'tool' && this.#stepOf(id) === step);
    if (had.every((message, index) => message.id === said[index]?.id && lacking(message, said[index]) !== undefined))
      return [...recorded.flatMap((message) => this.#whole(step, message)), ...this.#endAll()];
    const isEarlier = ({ id }: AgUiMessage) => (this.#stepOf(id) ?? 0) < step;
    const isLater = ({ id }: AgUiMessage) => (this.#stepOf(id) ?? 0) > step;
    const wanted = [...all.filter(isEarlier), ...recorded, ...all.filter(isLater)];
    return [...this.#endAll(), ...this.#reader.replace(wanted)];
  }

  /** Sends a recorded message, or the part of it that the reader lacks. */
  #whole(step: number, message: AgUiMessage): AgUiEvent[] {
    if (message.role === 'tool') return this.#result(step, message);
    if (this.#reader.isOver(message.id)) return [];
    const had = this.#reader.find(message.id);
    const rest = lacking(had, message) ?? '';
    const call = message.role === 'assistant' ? message.toolCalls?.[0] : undefined;
    if (had && rest === '') return [];
    const kind = call ? 'call' : message.role === 'reasoning' ? 'reasoning' : 'text';
    const begun = this.#begin(message.id, { step, kind }, call?.function.name);
    if (had) this.#reader.extend(message.id, rest);
    else this.#reader.add(structuredClone(message));
    return rest === '' ? begun : [...begun, pieceOf(kind, message.id, rest)];
  }

  /** Ends the messages of the model, which are recorded, and begins a call that the reader lacks, or has without arguments. */
  #call(call: { step: number; callId: string; name?: string }, input: JsonValue | undefined): AgUiEvent[] {
    const { step, callId, name = '' } = call;
    this.#calls.set(callId, step);
    const message = callMessage(this.#of(step), { toolCallId: callId, toolName: name, input: input ?? '' });
    const isBegun = this.#reader.isOver(message.id) || textOf(this.#reader.find(message.id)) !== '';
    return isBegun ? this.#endAll() : [...this.#whole(step, message), ...this.#endAll()];
  }

  #waits({ wait, input }: EventOf<'wait.opened'>): AgUiEvent[] {
    const { step, callId, tool } = wait;
    if (wait.kind === 'limit') {
      const { kind, turnAt, rule } = wait;
      return [
        ...this.#endAll(),
        { type: 'CUSTOM', name: 'pawl.wait', value: { kind, turnAt, ...(rule ? { rule } : {}) } },
      ];
    }
    return callId === undefined ? this.#endAll() : this.#call({ step, callId, ...(tool ? { name: tool } : {}) }, input);
  }

  #progress({ callId, name, progress }: EventOf<'tool.progress'>): AgUiEvent[] {
    const step = this.#calls.get(callId);
    if (step === undefined) return [];
    const value = { toolCallId: callIdOfMessage(this.#of(step), callId), toolName: name, progress };
    return [{ type: 'CUSTOM', name: 'pawl.tool.progress', value }];
  }

  #done({ step, callId, name, output }: EventOf<'tool.done'>): AgUiEvent[] {
    const called = this.#call({ step, callId, name }, undefined);
    this.#calls.delete(callId);
    return [...called, ...this.#result(step, resultMessage(this.#of(step), callId, output))];
  }

  #result(step: number, message: Extract<AgUiMessage, { readonly role: 'tool' }>): AgUiEvent[] {
    if (this.#reader.find(message.id)) return [];
    const entered = this.#enter(step);
    const { id: messageId, ...result } = structuredClone(message);
    this.#reader.add(message, message.toolCallId);
    return [...entered, ...this.#endAll(), { type: 'TOOL_CALL_RESULT', messageId, ...result }];
  }

  #leave({ step, usage, finishReason }: EventOf<'step.done'>): AgUiEvent[] {
    this.usage = usage;
    this.finishReason = finishReason;
    this.#reader.close((id) => (this.#stepOf(id) ?? 0) <= step);
    return this.#step === step ? this.close() : this.#endAll();
  }

  /** Removes a step and later ones: the model begins it again. */
  #reset(step: number): AgUiEvent[] {
    const ended = this.#step !== undefined && this.#step >= step ? this.close() : this.#endAll();
    for (const [callId, at] of this.#calls) if (at >= step) this.#calls.delete(callId);
    const kept = this.#reader.messages.filter(({ id }) => (this.#stepOf(id) ?? 0) < step);
    return kept.length === this.#reader.messages.length ? ended : [...ended, ...this.#reader.replace(kept)];
  }

  /** Returns the step of this run to which a message belongs; undefined for a message of another run, and of a person. */
  #stepOf(id: string): number | undefined {
    const prefix = `${this.#runId}:`;
    const step = id.startsWith(prefix) ? STEP.exec(id.slice(prefix.length))?.[1] : undefined;
    return step === undefined ? undefined : Number(step);
  }
}

/** The step in the rest of an id: `1.0`, `1:call:…`. A message of a person in a run has no step: `1`. */
const STEP = /^(\d{1,15})[.:]/;

function nameOf(step: number): string {
  return `step ${step}`;
}

/** The text of a message, or the arguments of its call. */
function textOf(message: AgUiMessage | undefined): string {
  if (!message) return '';
  const call = message.role === 'assistant' ? message.toolCalls?.[0] : undefined;
  if (call) return call.function.arguments;
  return typeof message.content === 'string' ? message.content : '';
}

function pieceOf(kind: Open['kind'], id: string, delta: string): AgUiEvent {
  if (kind === 'call') return { type: 'TOOL_CALL_ARGS', toolCallId: id, delta };
  return { type: kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT', messageId: id, delta };
}

/**
 * Returns what a reader lacks of a recorded message; undefined if it has another text. The arguments of a call are stored as
 * JSON, so the model's text of them may have other spaces.
 */
function lacking(had: AgUiMessage | undefined, recorded: AgUiMessage): string | undefined {
  const [begun, whole] = [textOf(had), textOf(recorded)];
  if (recorded.role === 'assistant' && recorded.toolCalls && isEqualJson(begun, whole)) return '';
  return whole.startsWith(begun) ? whole.slice(begun.length) : undefined;
}

function isEqualJson(a: string, b: string): boolean {
  try {
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
  } catch {
    return false;
  }
}
