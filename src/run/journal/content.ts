import type { JsonValue } from '../../values/json.ts';
import { type AssistantMessage, type Message, type ToolOutput, toolCallsOf } from '../../values/message.ts';
import { markOf } from '../../values/message-mark.ts';
import type { RunEvent } from '../events/body.ts';
import { callOf, type OpenStep } from '../open-step.ts';
import type { PhaseOutput } from '../phase.ts';
import type { RunOutcome } from '../result.ts';
import type { ContentPlace, JournalEntry } from './entry.ts';

/** The part of a record that holds the content of some events. */
export interface RecordContent {
  /** The index of the phase in progress; absent without one. */
  readonly phase?: number | undefined;
  /** Messages by their index. */
  readonly messages: ReadonlyMap<number, Message>;
  /** How many messages the record has: the open step has this index. */
  readonly count: number;
  readonly openStep?: OpenStep | undefined;
  readonly completedPhases: readonly PhaseOutput[];
  readonly outcome?: RunOutcome | undefined;
}

/** Removes from an event the content that its record holds. */
export function withoutContent(event: RunEvent): RunEvent {
  switch (event.type) {
    case 'step.snapshot':
      return { ...event, content: [] };
    case 'tool.started':
      return { ...event, input: null };
    case 'tool.done':
      return { ...event, name: '', output: nothing };
    case 'step.done': {
      const { answer: _, ...rest } = event;
      return { ...rest, tools: [] };
    }
    case 'phase.done':
    case 'run.ended':
      return { ...event, output: '' };
    case 'wait.opened': {
      const { input: _, ...rest } = event;
      return rest;
    }
    default:
      return event;
  }
}

const nothing: ToolOutput = { type: 'text', value: '' };

/**
 * Returns which messages of a record hold the content of these entries: from the first one to the one after the last one;
 * undefined if none does.
 */
export function messagesFor(entries: readonly JournalEntry[]): { from: number; to: number } | undefined {
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { content } of entries) {
    if (!content) continue;
    from = Math.min(from, content.message);
    to = Math.max(to, content.message + 2);
  }
  return to === 0 ? undefined : { from, to };
}

/** Returns whether an entry lacks content that its record holds. */
export function needsContent({ event, content }: JournalEntry): boolean {
  return content !== undefined || event.type === 'phase.done' || event.type === 'run.ended';
}

/**
 * Returns an entry with its content; undefined if the record does not have it any more: version 2 deleted the messages of a phase
 * with its end.
 */
export function withContent(entry: JournalEntry, record: RecordContent): JournalEntry | undefined {
  const event = filled(entry, record);
  return event && { ...entry, event };
}

function filled({ event, content }: JournalEntry, record: RecordContent): RunEvent | undefined {
  switch (event.type) {
    case 'phase.done': {
      const output = record.completedPhases[event.index]?.output;
      return output === undefined ? undefined : { ...event, output };
    }
    case 'run.ended':
      return record.outcome ? { ...event, output: record.outcome.output } : event;
    case 'step.snapshot': {
      const message = content && messageAt(content, record);
      return message && { ...event, content: message.content };
    }
    case 'tool.started':
    case 'wait.opened': {
      if (!content) return event;
      const input = inputOf(content, calledIn(event), record);
      return input === undefined ? undefined : { ...event, input };
    }
    case 'tool.done': {
      if (!content) return event;
      const done = resultOf(content, event.callId, record);
      return done && { ...event, ...done };
    }
    case 'step.done': {
      const message = content && messageAt(content, record);
      if (!message) return content ? undefined : event;
      const answer = markOf(message);
      const tools = toolCallsOf(message).map(({ toolName }) => toolName);
      return { ...event, tools, ...(answer ? { answer } : {}) };
    }
    default:
      return event;
  }
}

type Called = Extract<RunEvent, { type: 'tool.started' | 'wait.opened' }>;
const calledIn = (event: Called): string => (event.type === 'tool.started' ? event.callId : (event.wait.callId ?? ''));

function messageAt({ phase, message }: ContentPlace, record: RecordContent): AssistantMessage | undefined {
  if (phase !== undefined && phase !== record.phase) return undefined;
  const found = message === record.count ? record.openStep?.message : record.messages.get(message);
  return found?.role === 'assistant' ? found : undefined;
}

function inputOf(place: ContentPlace, callId: string, record: RecordContent): JsonValue | undefined {
  for (const part of messageAt(place, record)?.content ?? [])
    if (part.type === 'tool-call' && part.toolCallId === callId) return (part.input ?? null) as JsonValue;
  return undefined;
}

function resultOf(
  place: ContentPlace,
  callId: string,
  record: RecordContent,
): { readonly name: string; readonly output: ToolOutput } | undefined {
  if (place.phase !== undefined && place.phase !== record.phase) return undefined;
  if (place.message === record.count) {
    const { name, result } = (record.openStep && callOf(record.openStep, callId)) ?? {};
    return name === undefined || !result ? undefined : { name, output: result };
  }
  const results = record.messages.get(place.message + 1);
  if (results?.role !== 'tool') return undefined;
  for (const part of results.content)
    if (part.type === 'tool-result' && part.toolCallId === callId) return { name: part.toolName, output: part.output };
  return undefined;
}
