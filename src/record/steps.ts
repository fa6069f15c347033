import { canonicalJson, type JsonValue } from '../values/json.ts';
import { type Message, type ToolOutput, toolCallsOf, toolResultsOf } from '../values/message.ts';
import type { RunCheckpoint } from './checkpoint.ts';

/* A step is an answer of the model with the results of its calls. An open step is in no list of messages. */

/** The place of a step in a list of messages. */
interface StepPlace {
  /** The index of its answer. */
  readonly at: number;
  /** The index after its last message. */
  readonly end: number;
}

/** Returns the places of the whole steps from an index on. */
export function stepPlaces(messages: readonly Message[], from: number): readonly StepPlace[] {
  const places: StepPlace[] = [];
  for (let i = from; i < messages.length; i++) {
    if (messages[i]?.role !== 'assistant') continue;
    const at = i;
    while (messages[i + 1]?.role === 'tool') i++;
    places.push({ at, end: i + 1 });
  }
  return places;
}

type Placed = Pick<RunCheckpoint, 'messages' | 'thread' | 'earlier' | 'iteration'>;

/** Returns the record of a run with the messages of all its phases: a turn of a thread keeps them beside what the thread shows. */
export function withPhases<Of extends Pick<RunCheckpoint, 'messages' | 'phaseMessages'>>(record: Of): Of {
  return record.phaseMessages ? { ...record, messages: record.phaseMessages } : record;
}

/**
 * Returns the phases of a run once so many messages come before its own ones. A first phase reads what comes before it: it begins
 * where the record does.
 */
export function phasesBehind(
  { completedPhases, openPhase }: Pick<RunCheckpoint, 'completedPhases' | 'openPhase'>,
  count: number,
): Pick<RunCheckpoint, 'completedPhases' | 'openPhase'> {
  const moved = <Phase extends { readonly from?: number }>(phase: Phase): Phase =>
    phase.from ? { ...phase, from: phase.from + count } : phase;
  return { completedPhases: completedPhases.map(moved), ...(openPhase ? { openPhase: moved(openPhase) } : {}) };
}

/** Returns where the own messages of a run begin: behind the conversation before its prompt, unless that is the one of its thread. */
export function ownStepsFrom({ thread, earlier = [] }: Placed): number {
  return thread ? 0 : earlier.length;
}

/**
 * Returns the index after the opening of a run. One that began with a state of its host has answers which it did not make: they
 * belong to it.
 */
export function openingOfSteps(record: Placed): number {
  const own = ownStepsFrom(record);
  const places = stepPlaces(record.messages, own);
  return places[places.length - record.iteration - 1]?.end ?? Math.min(own + 1, record.messages.length);
}

/** Returns the places of the whole steps of a record. */
export function stepsIn(record: Placed): readonly StepPlace[] {
  return stepPlaces(record.messages, openingOfSteps(record));
}

/** A call that a run has made. */
export interface MadeCall {
  /** Counts from 1. */
  readonly step: number;
  /** Absent = it has no result yet. */
  readonly output?: ToolOutput;
}

/** Returns the first call of the same tool with the same input that a run has made after some of its steps. */
export function sameCallAfter(
  origin: RunCheckpoint,
  at: number,
  wanted: { readonly name: string; readonly input: JsonValue },
): MadeCall | undefined {
  const record = withPhases(origin);
  const { messages, openStep } = record;
  const input = canonicalJson(wanted.input);
  const isSame = (name: string, given: unknown) =>
    name === wanted.name && canonicalJson((given ?? null) as JsonValue) === input;
  const steps = stepsIn(record);
  for (const [i, { at: answer, end }] of steps.entries()) {
    const calls = i < at ? [] : toolCallsOf(messages[answer] as Message);
    const call = calls.find((each) => isSame(each.toolName, each.input));
    if (!call) continue;
    const results = messages.slice(answer + 1, end).flatMap(toolResultsOf);
    const output = results.find(({ toolCallId }) => toolCallId === call.toolCallId)?.output;
    return { step: i + 1, ...(output ? { output } : {}) };
  }
  const open = openStep?.calls.find((call) => isSame(call.name, call.input));
  return open && { step: steps.length + 1, ...(open.result ? { output: open.result } : {}) };
}
