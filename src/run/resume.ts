import { TranscriptInvalidError } from '../values/errors.ts';
import { Hidden } from '../values/hidden.ts';
import { frozenJson, isObject, RECORD_DEPTH } from '../values/json.ts';
import {
  enterMessage,
  isMessages,
  type Message,
  type ToolOutput,
  toolCallsOf,
  toolResultsOf,
} from '../values/message.ts';
import { withHint } from '../values/message-mark.ts';
import { checkMessage, checkOutputShape } from '../values/message-shape.ts';
import { rowsOf } from './field-rows.ts';
import type { HeadFields, IdentityFields, StartFields } from './fields.ts';
import type { OpenCall, OpenStep } from './open-step.ts';
import { isBetweenPhases } from './pipeline.ts';
import { noMessages, openingOf, ownFrom, type Progress, type ToolFacts } from './progress.ts';
import { Transcript } from './transcript.ts';

/** The state that a run continues from: a stored record's content, or a history of the host's own. All fields are optional. */
export interface ResumeState
  extends Partial<HeadFields>,
    Partial<StartFields>,
    Pick<IdentityFields, 'birth' | 'beganAt'> {
  /** The transcript so far. Absent or empty = a fresh start. Calls at its end without results become the open step. */
  readonly history?: readonly Message[];
  /** The events of this process have higher numbers. */
  readonly seq?: number;
}

/**
 * Returns the progress of a run that continues from its stored record.
 * @param fresh the progress of a new run; its meta and definition are the present ones
 * @throws {TRANSCRIPT_INVALID} if a result has no call, or a call before the end has no result
 */
export function resumeProgress(fresh: Progress, resume: ResumeState, tools: ToolFacts = {}): Progress {
  const history = (resume.history ?? []).map((message, i) => enterMessage(message, `history[${i}]`));
  const { settled, open } = splitHistory(history, tools);
  const openStep = resume.openStep ?? open;
  const images = resume.images ? new Hidden(resume.images) : fresh.images;
  const earlier = earlierOf(fresh, resume);
  const opening = openingOf({ meta: fresh.meta, images, earlier });
  const isFresh = history.length === 0 && !openStep;
  return {
    ...fresh,
    ...headIn(resume),
    definition: fresh.definition,
    ...(isFresh
      ? { transcript: fresh.transcript.length === 0 ? fresh.transcript : opening }
      : conversationIn(resume, { settled, opening, own: ownFrom({ ...fresh, earlier }) })),
    inputs: resume.inputs ? new Hidden(resume.inputs) : fresh.inputs,
    images,
    earlier,
    ...(openStep ? { openStep } : {}),
  };
}

interface Stored {
  /** The messages of all phases. */
  readonly settled: readonly Message[];
  readonly opening: Transcript;
  /** The index of the first message that the record holds. */
  readonly own: number;
}

/** The conversation of the phase in progress is the opening, and its own messages. A single loop, or a first phase, has all. */
function conversationIn(
  resume: ResumeState,
  { settled, opening, own }: Stored,
): Pick<Progress, 'whole' | 'transcript'> {
  const from = isBetweenPhases(resume) ? settled.length - own : (resume.openPhase?.from ?? 0);
  const whole = Transcript.of(settled);
  return from > 0 ? { whole, transcript: opening.append(...settled.slice(own + from)) } : { transcript: whole };
}

/**
 * What is not part of a run's progress: the critic's state, which an inspector would see, and the fault of a setup, which is over
 * when this process saves the run.
 */
const apart: readonly string[] = ['critic', 'setup'];
const headRows = rowsOf('head').filter(({ key }) => !apart.includes(key));

/** Returns the head fields of a resume state. */
function headIn(resume: ResumeState): Partial<HeadFields> {
  const found = headRows.flatMap(({ key }) => {
    const value = resume[key as keyof HeadFields] ?? undefined;
    return value === undefined ? [] : [[key, value]];
  });
  return Object.fromEntries(found) as Partial<HeadFields>;
}

/** A host's own history is sent as it is: an earlier conversation before the prompt does not apply. */
function earlierOf({ earlier }: Progress, resume: ResumeState): Progress['earlier'] {
  if (resume.earlier) return new Hidden(resume.earlier.map((message, i) => enterMessage(message, `earlier[${i}]`)));
  return (resume.history ?? []).length > 0 ? noMessages : earlier;
}

/**
 * Checks each message that a host gives, by its shape.
 * @param of names the list in errors, for example `history`
 * @throws {NOT_JSON} @throws {TRANSCRIPT_INVALID}
 */
function enterGiven(given: readonly unknown[], of: string): readonly Message[] {
  return given.map((message, i) => {
    const entered = enterMessage(message, `${of}[${i}]`);
    checkMessage(entered, `${of}[${i}]`);
    return entered;
  });
}

/**
 * Checks the resume state that a host gives, and takes its messages in. Those of a stored record were checked when it was
 * parsed.
 * @throws {NOT_JSON} @throws {TRANSCRIPT_INVALID}
 */
export function enterResume(given: ResumeState): ResumeState {
  const lists = messageLists.flatMap((key) => (given[key] ? [[key, enterGiven(given[key], key)]] : []));
  const others = Object.entries(given).filter(([key]) => !messageLists.includes(key as 'history'));
  const fields = frozenJson(Object.fromEntries(others), 'resume', RECORD_DEPTH) as unknown as ResumeState;
  if (fields.openStep) checkOpenStep(fields.openStep);
  return { ...fields, ...Object.fromEntries(lists) };
}

/**
 * Checks the open step of a resume state.
 * @throws {TRANSCRIPT_INVALID} also if the ledger does not match the calls in the message
 */
function checkOpenStep({ message, calls }: OpenStep): void {
  checkMessage(message, 'openStep.message');
  const asked = toolCallsOf(message);
  const isSame = ({ callId, name }: OpenCall, i: number) =>
    asked[i]?.toolCallId === callId && asked[i].toolName === name;
  if (message.role !== 'assistant' || calls.length !== asked.length || !calls.every(isSame))
    throw new TranscriptInvalidError('openStep: its calls must be those of its message, in their order');
  for (const [i, { result }] of calls.entries()) if (result) checkOutputShape(result, `openStep.calls[${i}].result`);
}

/** The fields of a resume state that are lists of messages: `history`, and those of the table of run fields. */
export const messageLists = [
  'history',
  ...rowsOf('start', 'head').flatMap(({ key, spec }) => (spec.isValid === isMessages ? [key] : [])),
] as readonly ('history' | 'earlier' | 'undelivered' | 'nudges')[];

/**
 * Checks the earlier conversation (history) with which a host begins a run, and takes it in. Of
 * the marks in it only the names of models stay.
 * @throws {NOT_JSON} @throws {TRANSCRIPT_INVALID} also if it ends in calls without results: no process would make them
 */
export function enterHistory(given: readonly unknown[]): readonly Message[] {
  const history = enterGiven(given, 'history').map((message) => enterMessage(withHint(message)));
  const { open, settled } = splitHistory(history, {});
  if (!open) return history;
  throw new TranscriptInvalidError(
    `history[${settled.length}]: the history ends in a tool call without a result; add the result, or remove the call`,
  );
}

/** Checks that every call has one result, and separates an unanswered step at the end. */
function splitHistory(history: readonly Message[], tools: ToolFacts): { settled: readonly Message[]; open?: OpenStep } {
  let i = 0;
  while (i < history.length) {
    const message = history[i] as Message;
    checkShape(message, i);
    if (message.role === 'tool')
      throw new TranscriptInvalidError(`history[${i}]: tool results without a call before them`);
    const results = new Map<string, ToolOutput>();
    const next = collectResults(history, i, results);
    const calls = toolCallsOf(message);
    if (calls.some((call) => !results.has(call.toolCallId))) {
      if (next < history.length) throw new TranscriptInvalidError(`history[${i}]: a tool call has no result`);
      return { settled: history.slice(0, i), open: { message, calls: ledger(message, results, tools) } as OpenStep };
    }
    i = next;
  }
  return { settled: history };
}

function checkShape(message: Message, index: number): void {
  const isSystem = message.role === 'system';
  const isParts = Array.isArray(message.content) && message.content.every(isObject);
  if (isSystem ? typeof message.content === 'string' : isParts) return;
  const needed = isSystem ? 'a content that is a string' : 'a content of parts';
  throw new TranscriptInvalidError(`history[${index}]: a ${String(message.role)} message needs ${needed}`);
}

function collectResults(history: readonly Message[], start: number, results: Map<string, ToolOutput>): number {
  const ids = new Set(toolCallsOf(history[start] as Message).map((call) => call.toolCallId));
  let i = start + 1;
  for (; history[i]?.role === 'tool'; i++) {
    for (const part of toolResultsOf(history[i] as Message)) {
      if (!ids.has(part.toolCallId) || results.has(part.toolCallId)) {
        throw new TranscriptInvalidError(
          `history[${i}]: the result of ${JSON.stringify(part.toolCallId)} answers no call`,
        );
      }
      results.set(part.toolCallId, part.output);
    }
  }
  return i;
}

/** The progress of an open step in a host's own history is unknown: calls without a result count as running. */
function ledger(message: Message, results: ReadonlyMap<string, ToolOutput>, tools: ToolFacts): OpenCall[] {
  return toolCallsOf(message).map((call): OpenCall => {
    const result = results.get(call.toolCallId);
    const effect = Object.hasOwn(tools, call.toolName) ? (tools[call.toolName]?.effect ?? 'once') : 'read';
    const line = {
      callId: call.toolCallId,
      name: call.toolName,
      input: (call.input ?? null) as OpenCall['input'],
      effect,
      attempt: 1,
    };
    return result ? { ...line, state: 'done', result } : { ...line, state: 'started' };
  });
}
