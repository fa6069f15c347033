import type { ClientError, ConnectionState } from '../client/index.ts';
import type { JournalEvent, RunStatus, Wait } from '../index.ts';
import { unread } from '../run/journal/reply-view.ts';
import type { JsonValue } from '../values/json.ts';

/** A part of what a model says in one step. `block` is its place in the message of the step. */
export type RunPart =
  | { readonly type: 'text' | 'reasoning'; readonly block: number; readonly text: string }
  | RunCallPart
  | { readonly type: 'file'; readonly block: number; readonly mediaType: string; readonly data?: unknown }
  /** Any other part of the message, as the AI SDK has it. */
  | { readonly type: 'other'; readonly block: number; readonly part: unknown };

/** A tool call. */
export interface RunCallPart {
  readonly type: 'call';
  readonly block: number;
  readonly callId: string;
  readonly name: string;
  /** `writing`: the model writes its input. `called`: it has not begun. */
  readonly state: 'writing' | 'called' | 'running' | 'done';
  /** The text of the input so far, while the model writes it. */
  readonly inputText: string;
  readonly input?: unknown;
  /** What the tool last reported of its progress. */
  readonly progress?: JsonValue;
  /** The result as the model reads it. */
  readonly output?: unknown;
}

/** One turn of the model, with its tool calls. */
export interface RunStep {
  /** From 1. */
  readonly step: number;
  readonly parts: readonly RunPart[];
  readonly sources: readonly unknown[];
  /** Its message is recorded, and its calls are over. */
  readonly isDone: boolean;
}

/** An open wait of a run. */
export type RunWait = Wait & {
  /** The input of the call that waits. */
  readonly input?: JsonValue;
  /** The model's own input, if a person changed it. */
  readonly modelInput?: JsonValue;
  /** Why the last answer was not taken. */
  readonly refused?: { readonly code: string; readonly reason: string };
};

/** What a page knows of a run. */
export interface RunState {
  /** `loading`: nothing yet. `waiting`: nothing is left to do before one of the waits is over. */
  readonly status: 'loading' | 'running' | 'waiting' | 'parked' | 'ended';
  /** `closed`: the run is over, or `error` says why it cannot be followed. */
  readonly connection: ConnectionState | 'closed';
  readonly steps: readonly RunStep[];
  readonly waits: readonly RunWait[];
  /** How the run ended, and its answer. */
  readonly result?: { readonly status: RunStatus; readonly output: string; readonly error?: RunFailure };
  /** Why the connection waits or is closed. */
  readonly error?: ClientError | Error;
}

/** The error of a run that failed. */
export interface RunFailure {
  readonly code: string;
  readonly message: string;
}

/** What a page knows before the first event. */
export const unknownRun: RunState = Object.freeze({
  status: 'loading',
  connection: 'connecting',
  steps: Object.freeze([]),
  waits: Object.freeze([]),
});

type Of<Type extends JournalEvent['type']> = Extract<JournalEvent, { type: Type }>;
type Change<Type extends JournalEvent['type']> = (state: RunState, event: Of<Type>) => RunState;

/** What each event changes. Events without a row change nothing that a page shows. */
const changes: { readonly [Type in JournalEvent['type']]?: Change<Type> } = {
  'run.started': running,
  'run.resumed': running,
  'run.woken': running,
  'run.waiting': (state) => ({ ...state, status: 'waiting' }),
  'run.parked': (state) => ({ ...state, status: 'parked' }),
  'run.ended': (state, { status, output, error }) => ({
    ...state,
    status: 'ended',
    waits: [],
    result: { status, output, ...(error ? { error } : {}) },
  }),
  'step.started': (state, { step }) => inStep(running(state), step, (known) => known),
  'step.reset': (state, { step }) => ({ ...state, steps: state.steps.filter((known) => known.step < step) }),
  'step.snapshot': (state, { step, content }) =>
    inStep(running(state), step, (known) => ({ ...known, parts: recorded(known.parts, content) })),
  'step.done': (state, { step }) => inStep(state, step, (known) => ({ ...known, isDone: true })),
  'model.delta': (state, piece) =>
    inPart(running(state), piece, (known) => {
      const before = textIn(known);
      const more = unread(before.length, piece);
      return more === '' ? known : { type: piece.kind, block: piece.block, text: before + more };
    }),
  'model.file': (state, { step, block, mediaType }) =>
    inPart(state, { step, block }, () => ({ type: 'file', block, mediaType })),
  'model.source': (state, { step, source }) =>
    inStep(state, step, (known) => ({ ...known, sources: [...known.sources, source] })),
  'tool.input': (state, piece) =>
    inPart(running(state), piece, (known) => {
      const { block, offset, callId, name } = piece;
      const before = textIn(known);
      const more = unread(before.length, piece);
      // The first piece announces a call, also an empty one.
      if (more === '' && (known || offset > 0)) return known;
      return { type: 'call', block, callId, name, state: 'writing', inputText: before + more };
    }),
  'tool.started': (state, { step, callId, name, input }) =>
    inCall(state, { step, callId, name }, (call) => ({ ...call, state: 'running', input })),
  'tool.progress': (state, { callId, name, progress }) =>
    inCall(state, { step: stepOf(state, callId), callId, name }, (call) => ({ ...call, progress })),
  'tool.done': (state, { step, callId, name, output, isLate }) =>
    isLate ? state : inCall(state, { step, callId, name }, (call) => ({ ...call, state: 'done', output })),
  'wait.opened': (state, { wait, input }) => ({
    ...state,
    waits: [...withoutWait(state, wait.id), input === undefined ? wait : { ...wait, input }],
  }),
  // With votes, more persons are needed.
  'wait.answered': (state, { waitId, votes, wait }) => {
    if (votes === undefined) return { ...state, waits: withoutWait(state, waitId) };
    // A person put another input in its place.
    return wait
      ? { ...state, waits: state.waits.map((each) => (each.id === waitId ? changedWait(each, wait) : each)) }
      : state;
  },
  'wait.expired': (state, { waitId }) => ({ ...state, waits: withoutWait(state, waitId) }),
  'wait.withdrawn': (state, { waitId }) => ({ ...state, waits: withoutWait(state, waitId) }),
  'wait.refused': (state, { waitId, code, reason }) => ({
    ...state,
    waits: state.waits.map((wait) => (wait.id === waitId ? { ...wait, refused: { code, reason } } : wait)),
  }),
};

/** Returns what a page knows after one more event. Parts that the event does not change stay the same objects. */
export function withEvent(state: RunState, event: JournalEvent): RunState {
  const change = Object.hasOwn(changes, event.type) ? (changes[event.type] as Change<typeof event.type>) : undefined;
  return change ? change(state, event as never) : state;
}

/** The wait for a changed input; the model's own stays with it. */
function changedWait({ input, modelInput = input }: RunWait, wait: Wait): RunWait {
  return { ...wait, ...(modelInput === undefined ? {} : { modelInput }) };
}

function running(state: RunState): RunState {
  return state.status === 'running' ? state : { ...state, status: 'running' };
}

/** What the pieces of a part said so far. */
function textIn(part: RunPart | undefined): string {
  if (part?.type === 'call') return part.inputText;
  return part?.type === 'text' || part?.type === 'reasoning' ? part.text : '';
}

function inStep(state: RunState, step: number, change: (known: RunStep) => RunStep): RunState {
  const at = state.steps.findLastIndex((known) => known.step <= step);
  const known = state.steps[at];
  if (known?.step === step) return { ...state, steps: state.steps.with(at, change(known)) };
  const added = change({ step, parts: [], sources: [], isDone: false });
  return { ...state, steps: state.steps.toSpliced(at + 1, 0, added) };
}

function inPart(
  state: RunState,
  { step, block }: { readonly step: number; readonly block: number },
  change: (known: RunPart | undefined) => RunPart | undefined,
): RunState {
  return inStep(state, step, (known) => {
    const at = known.parts.findLastIndex((part) => part.block <= block);
    const part = known.parts[at]?.block === block ? known.parts[at] : undefined;
    const next = change(part);
    if (next === undefined || next === part) return known;
    return { ...known, parts: known.parts.toSpliced(part ? at : at + 1, part ? 1 : 0, next) };
  });
}

interface CallPlace {
  readonly step: number;
  readonly callId: string;
  readonly name: string;
}

/** Changes a call. One whose message the reader did not get is added behind the others. */
function inCall(
  state: RunState,
  { step, callId, name }: CallPlace,
  change: (call: RunCallPart) => RunCallPart,
): RunState {
  return inStep(state, step, (known) => {
    const at = known.parts.findIndex((part) => part.type === 'call' && part.callId === callId);
    const call = known.parts[at] as RunCallPart | undefined;
    if (call) return { ...known, parts: known.parts.with(at, change(call)) };
    const block = (known.parts.at(-1)?.block ?? -1) + 1;
    const added: RunCallPart = { type: 'call', block, callId, name, state: 'called', inputText: '' };
    return { ...known, parts: [...known.parts, change(added)] };
  });
}

function stepOf(state: RunState, callId: string): number {
  const has = (part: RunPart): boolean => part.type === 'call' && part.callId === callId;
  return state.steps.findLast(({ parts }) => parts.some(has))?.step ?? state.steps.at(-1)?.step ?? 1;
}

function withoutWait({ waits }: RunState, id: string): readonly RunWait[] {
  return waits.filter((wait) => wait.id !== id);
}

/** The parts of a recorded message. What is known of its calls stays: they may have begun. */
function recorded(known: readonly RunPart[], content: Of<'step.snapshot'>['content']): readonly RunPart[] {
  return content.map((part, block): RunPart => {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return { type: part.type, block, text: part.text };
      case 'file':
        return { type: 'file', block, mediaType: part.mediaType, data: part.data };
      case 'tool-call': {
        const { toolCallId: callId, toolName: name, input } = part;
        const before = known.find((each) => each.type === 'call' && each.callId === callId) as RunCallPart | undefined;
        const state = before === undefined || before.state === 'writing' ? 'called' : before.state;
        return { inputText: '', ...before, type: 'call', block, callId, name, input, state };
      }
      default:
        return { type: 'other', block, part };
    }
  });
}
