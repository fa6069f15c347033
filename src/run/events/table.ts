// All events of a run, as a table: how each is redacted, audited and kept.
import type { ErrorData } from '../../values/error-data.ts';
import type { JsonValue } from '../../values/json.ts';
import type { AssistantMessage, ToolOutput } from '../../values/message.ts';
import type { Usage } from '../../values/usage.ts';
import type { RunStatus } from '../finalize.ts';
import type { ToolEffect } from '../ledger.ts';
import type { ModelSource } from '../reply.ts';
import type { HowAnswered, Person, Wait } from '../waits/wait.ts';

/** The parts of a model's message. */
export type ReplyContent = AssistantMessage['content'];

/**
 * An event without the run, the number and the time. `step` counts from 1 over the whole life of the run. `block` is the index
 * of a part in the content of the step's message, `offset` a place in its text, in UTF-16 units. `owner` is the owner of the
 * run's claim, `revision` the newest one of its record that this process knows to be stored.
 */
export type RunEventBody =
  /** A new run was accepted. `isSlice`: this process has it only for a slice of time, and leaves when that is over. */
  | { readonly type: 'run.started'; readonly isSlice?: true; readonly owner?: string; readonly revision?: number }
  /** A recorded run continues; recorded events are not published again. `isSlice` as in `run.started`. */
  | {
      readonly type: 'run.resumed';
      readonly iteration: number;
      readonly attempts: number;
      readonly isSlice?: true;
      readonly owner?: string;
      readonly revision?: number;
    }
  /**
   * The process leaves the run, with its newest state, to another one: it shuts down or drains, or its host stopped the run. Not
   * at the end of a slice, which is followed by another one.
   */
  | {
      readonly type: 'run.left';
      readonly why: 'shutdown' | 'stop';
      readonly owner?: string;
      readonly revision?: number;
    }
  /** The run's machine is in another state, for example `completing`. */
  | { readonly type: 'run.status'; readonly state: string }
  /** The run is parked until a person unparks it: it parked itself, or a start or a recovery found it parked. */
  | { readonly type: 'run.parked'; readonly code: string; readonly reason: string; readonly by?: Person }
  /** A person unparked the run: the next start continues it. Only in the journal: the run is not live then. */
  | { readonly type: 'run.unparked'; readonly by?: Person }
  /** The last event. */
  | { readonly type: 'run.ended'; readonly status: RunStatus; readonly output: string; readonly error?: ErrorData }
  /** A model turn begins. */
  | { readonly type: 'step.started'; readonly step: number }
  /** A model turn and its tool calls are over; `usage` is the run's total so far. */
  | { readonly type: 'step.done'; readonly step: number; readonly usage: Usage; readonly tools: readonly string[] }
  /** The pieces of this step, and all events of later ones, are void: the step is made again. */
  | { readonly type: 'step.reset'; readonly step: number }
  /** The whole message of a step, for a reader that did not get its pieces. Never in `run.events()`. */
  | { readonly type: 'step.snapshot'; readonly step: number; readonly content: AssistantMessage['content'] }
  /** A piece of the model's answer as it arrives. After `step.reset` the pieces of a step come again. */
  | {
      readonly type: 'model.delta';
      readonly step: number;
      readonly block: number;
      readonly offset: number;
      readonly kind: 'text' | 'reasoning';
      readonly text: string;
    }
  /** The model's answer has a file; its content is in the message. */
  | { readonly type: 'model.file'; readonly step: number; readonly block: number; readonly mediaType: string }
  /** The model named a source. Published when its answer is complete; the message does not have it. */
  | { readonly type: 'model.source'; readonly step: number; readonly source: ModelSource }
  /** A model call failed with a retryable error. `attempt` is the one made after `delayMs`: the first retry is 2. */
  | {
      readonly type: 'model.retry';
      readonly step: number;
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ErrorData;
    }
  /** A piece of a call's arguments, as the model writes them: JSON text. With `redact` only one comes, and its text is empty. */
  | {
      readonly type: 'tool.input';
      readonly step: number;
      readonly block: number;
      readonly offset: number;
      readonly callId: string;
      readonly name: string;
      readonly text: string;
    }
  /** A tool call begins. */
  | {
      readonly type: 'tool.started';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly effect: ToolEffect;
      readonly input: JsonValue;
      readonly attempt: number;
      readonly owner?: string;
      readonly revision?: number;
    }
  /** A tool reported its progress, as plain JSON. */
  | { readonly type: 'tool.progress'; readonly callId: string; readonly name: string; readonly progress: JsonValue }
  /**
   * A tool call is over, `ms` after it began; 0 for a call that was refused. `isLate` marks a result that came after the call
   * had been answered without it: it is not part of the run.
   */
  | {
      readonly type: 'tool.done';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly effect: ToolEffect;
      readonly output: ToolOutput;
      readonly ms: number;
      readonly isLate?: true;
      readonly owner?: string;
      readonly revision?: number;
    }
  /** A phase of a pipeline begins; `index` counts from 0. */
  | { readonly type: 'phase.started'; readonly index: number; readonly name: string }
  /** A phase is over. */
  | { readonly type: 'phase.done'; readonly index: number; readonly name: string; readonly output: string }
  /** The phase was complete before this process continued the run. */
  | { readonly type: 'phase.skipped'; readonly index: number; readonly name: string }
  /** A steered message was accepted, and waits for the next turn. */
  | { readonly type: 'steer.queued' }
  /** The waiting messages, and nudges of a critic, are in the transcript; the model reads them in the turn that begins. */
  | { readonly type: 'steer.applied'; readonly count: number; readonly texts?: readonly string[] }
  /** The run waits, and this is stored. `input` is that of its call; a person sees it before a decision. */
  | { readonly type: 'wait.opened'; readonly wait: Wait; readonly input?: JsonValue }
  /** A wait is over, or, with `votes`, one more person has approved. */
  | {
      readonly type: 'wait.answered';
      readonly waitId: string;
      readonly kind: Wait['kind'];
      readonly how: HowAnswered;
      readonly by?: Person;
      /** The votes so far, while others are needed. */
      readonly votes?: number;
      readonly callId?: string;
    }
  /** An answer was not taken; the wait stays open. */
  | {
      readonly type: 'wait.refused';
      readonly waitId: string;
      readonly code: string;
      readonly reason: string;
      readonly by?: Person;
    }
  /** No answer came in time. */
  | { readonly type: 'wait.expired'; readonly waitId: string; readonly kind: Wait['kind']; readonly callId?: string }
  /** The wait is over without an answer: the run ended, or asks again because the call or its agent has changed. */
  | { readonly type: 'wait.withdrawn'; readonly waitId: string; readonly kind: Wait['kind']; readonly callId?: string }
  /** Nothing is left to do before one of the waits is over. `wakeAt`: the earliest time at which one ends by itself, ms. */
  | { readonly type: 'run.waiting'; readonly waits: number; readonly wakeAt?: number }
  /** The run works again. */
  | { readonly type: 'run.woken' }
  /** A save is stored. */
  | { readonly type: 'checkpoint.saved'; readonly iteration: number }
  /** A save failed. */
  | { readonly type: 'checkpoint.failed'; readonly error: ErrorData }
  /** This consumer was too slow: `count` events before this one are missing for it, pieces of text first. */
  | { readonly type: 'events.dropped'; readonly count: number };

/** One event of a run. `seq` rises by 1, jumps forward at a resume, and never falls; `at` is the wall clock, ms. */
export type RunEvent = RunEventBody & { readonly runId: string; readonly seq: number; readonly at: number };

/**
 * How a host's redaction treats a field: not at all (`public`: names, ids, codes), or it changes the text, every text in the
 * JSON, in the message's content, in the tool's output, in the error, or in the wait.
 */
export type FieldRedaction = 'public' | 'text' | 'json' | 'content' | 'output' | 'error' | 'wait';

/** The redactions that keep a field's type. A field that may hold a host's or a model's words is never `public`. */
type RedactionOf<Value> = [Value] extends [string]
  ? string extends Value
    ? 'public' | 'text'
    : 'public'
  : [Value] extends [Wait]
    ? 'wait'
    : [Value] extends [ErrorData]
      ? 'error'
      : [Value] extends [ToolOutput]
        ? 'output'
        : [Value] extends [ReplyContent]
          ? 'content'
          : [string] extends [Value]
            ? 'json'
            : 'public' | 'json';

/** A redaction for each field that is not a number or a flag. */
export type EventRows<Event> = {
  readonly [Field in keyof Event as Field extends 'type'
    ? never
    : NonNullable<Event[Field]> extends number | boolean
      ? never
      : Field]-?: RedactionOf<NonNullable<Event[Field]>>;
};

type Keep = 'kept' | 'with-save' | 'with-step' | 'passing';

/** Everything that Pawl knows of a type of events, besides its fields. */
export interface EventSpec<Event> {
  readonly redact: EventRows<Event>;
  /** The method of the audit recorder that gets it; `log` = `logEvent`, `skip` = none. */
  readonly audit: 'skip' | 'log' | 'step' | 'tool' | 'phase';
  /** The event ends the model's current text: a buffered incomplete line is published before it. */
  readonly endsText: boolean;
  /**
   * How a journal keeps it. `kept`: reports a fact that is stored when the event is published. `with-save`, `with-step`: reports
   * what the next save, or the save of its step, call or phase, will record, and is kept with that save. `passing`: only of
   * interest while it happens. `none`: of this process or consumer only.
   */
  readonly keep: Keep | 'none' | ((event: Event) => Keep);
  /** Its part of a step: the model call, whose second attempt voids it, or what comes after. Absent: neither. */
  readonly of?: 'call' | 'step';
  /**
   * The critic takes it as a sign of life. `delta`: a piece of a message that arrives whole later; a full buffer drops these
   * first.
   */
  readonly activity?: 'step' | 'tool' | 'delta';
}

/** A row for each type of events. It does not compile while a type, or a field that may hold a text, has no row. */
export type EventTable<Body extends { readonly type: string }> = {
  readonly [Type in Body['type']]: EventSpec<Extract<Body, { readonly type: Type }>>;
};

/**
 * The table of all types of events. A new type needs a docstring and its fields above, a row here, the call that publishes it,
 * and a sample in test/run/events.test.ts; `npm run docs` writes the table of docs/events.md.
 */
export const runEvents = {
  'run.started': { redact: { owner: 'public' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.resumed': { redact: { owner: 'public' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.left': { redact: { why: 'public', owner: 'public' }, audit: 'log', endsText: true, keep: 'with-save' },
  'run.status': { redact: { state: 'public' }, audit: 'skip', endsText: true, keep: 'none' },
  'run.parked': { redact: { code: 'public', reason: 'text', by: 'json' }, audit: 'log', endsText: true, keep: 'kept' },
  'run.unparked': { redact: { by: 'json' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.ended': {
    redact: { status: 'public', output: 'text', error: 'error' },
    audit: 'skip',
    endsText: true,
    keep: 'kept',
  },
  'step.started': { redact: {}, audit: 'skip', endsText: true, of: 'call', keep: 'passing' },
  'step.done': {
    redact: { usage: 'public', tools: 'public' },
    audit: 'step',
    endsText: true,
    of: 'step',
    keep: 'with-step',
    activity: 'step',
  },
  'step.reset': { redact: {}, audit: 'skip', endsText: true, of: 'call', keep: 'passing' },
  'step.snapshot': { redact: { content: 'content' }, audit: 'skip', endsText: false, keep: 'with-step' },
  'model.delta': {
    redact: { kind: 'public', text: 'text' },
    audit: 'skip',
    endsText: false,
    of: 'call',
    keep: 'passing',
    activity: 'delta',
  },
  'model.file': {
    redact: { mediaType: 'text' },
    audit: 'skip',
    endsText: false,
    of: 'call',
    keep: 'passing',
    activity: 'delta',
  },
  'model.source': { redact: { source: 'json' }, audit: 'skip', endsText: false, of: 'call', keep: 'with-step' },
  'model.retry': { redact: { error: 'error' }, audit: 'log', endsText: true, of: 'call', keep: 'passing' },
  'tool.input': {
    redact: { callId: 'public', name: 'public', text: 'text' },
    audit: 'skip',
    endsText: false,
    of: 'call',
    keep: 'passing',
    activity: 'delta',
  },
  'tool.started': {
    redact: { callId: 'public', name: 'public', effect: 'public', input: 'json', owner: 'public' },
    audit: 'tool',
    endsText: true,
    of: 'step',
    keep: ({ effect }) => (effect === 'read' ? 'passing' : 'kept'),
    activity: 'tool',
  },
  'tool.progress': {
    redact: { callId: 'public', name: 'public', progress: 'json' },
    audit: 'skip',
    endsText: false,
    of: 'step',
    keep: 'passing',
  },
  'tool.done': {
    redact: { callId: 'public', name: 'public', effect: 'public', output: 'output', owner: 'public' },
    audit: 'tool',
    endsText: false,
    of: 'step',
    keep: ({ isLate }) => (isLate ? 'passing' : 'with-step'),
  },
  'phase.started': { redact: { name: 'public' }, audit: 'phase', endsText: true, keep: 'with-save' },
  'phase.done': { redact: { name: 'public', output: 'text' }, audit: 'phase', endsText: true, keep: 'with-step' },
  'phase.skipped': { redact: { name: 'public' }, audit: 'phase', endsText: false, keep: 'kept' },
  'steer.queued': { redact: {}, audit: 'log', endsText: false, keep: 'kept' },
  'steer.applied': { redact: { texts: 'json' }, audit: 'log', endsText: false, keep: 'with-save' },
  'wait.opened': { redact: { wait: 'wait', input: 'json' }, audit: 'log', endsText: true, of: 'step', keep: 'kept' },
  'wait.answered': {
    redact: { waitId: 'public', kind: 'public', how: 'public', by: 'json', callId: 'public' },
    audit: 'log',
    endsText: false,
    keep: 'kept',
  },
  'wait.refused': {
    redact: { waitId: 'public', code: 'public', reason: 'text', by: 'json' },
    audit: 'log',
    endsText: false,
    keep: 'kept',
  },
  'wait.expired': {
    redact: { waitId: 'public', kind: 'public', callId: 'public' },
    audit: 'log',
    endsText: false,
    keep: 'kept',
  },
  'wait.withdrawn': {
    redact: { waitId: 'public', kind: 'public', callId: 'public' },
    audit: 'log',
    endsText: false,
    keep: 'kept',
  },
  'run.waiting': { redact: {}, audit: 'log', endsText: true, keep: 'kept' },
  'run.woken': { redact: {}, audit: 'log', endsText: false, keep: 'kept' },
  'checkpoint.saved': { redact: {}, audit: 'log', endsText: false, keep: 'none' },
  'checkpoint.failed': { redact: { error: 'error' }, audit: 'log', endsText: false, keep: 'none' },
  'events.dropped': { redact: {}, audit: 'skip', endsText: false, keep: 'none' },
} satisfies EventTable<RunEventBody>;

type Table = typeof runEvents;
type With<Field extends keyof EventSpec<unknown>, Value> = {
  [Type in keyof Table]: Table[Type] extends { readonly [F in Field]: Value } ? Type : never;
}[keyof Table];

/** The events that the audit gets through one method. */
export type AuditedAs<Class extends EventSpec<unknown>['audit']> = Extract<
  RunEvent,
  { readonly type: With<'audit', Class> }
>;
/** The events that the critic takes as one kind of activity. */
export type ActiveAs<Kind extends EventSpec<unknown>['activity']> = Extract<
  RunEvent,
  { readonly type: With<'activity', Kind> }
>;

/** A row without the type of its event. */
type AnySpec = Omit<EventSpec<never>, 'redact'> & { readonly redact: Readonly<Record<string, FieldRedaction>> };

const specs: ReadonlyMap<string, AnySpec> = new Map(Object.entries(runEvents));
const unknownEvent: AnySpec = { redact: {}, audit: 'skip', endsText: false, keep: 'none' };

/** Returns the row of an event's type. The row of an unknown type passes on only numbers. */
export function specOf({ type }: { readonly type: string }): AnySpec {
  return specs.get(type) ?? unknownEvent;
}

/** Returns whether the audit keeps events of a type in this way. */
export function isAuditedAs<Class extends EventSpec<unknown>['audit']>(
  event: RunEvent,
  as: Class,
): event is AuditedAs<Class> {
  return specOf(event).audit === as;
}

/** Returns whether events of a type count as this kind of activity of a run. */
export function isActiveAs<Kind extends NonNullable<EventSpec<unknown>['activity']>>(
  event: RunEvent,
  as: Kind,
): event is ActiveAs<Kind> {
  return specOf(event).activity === as;
}

/** Returns how a journal treats an event: see `EventSpec.keep`. */
export function keepOf(event: RunEventBody): Keep | 'none' {
  const { keep } = specOf(event);
  return typeof keep === 'function' ? keep(event as never) : keep;
}

const withOwner: ReadonlySet<string> = new Set(
  [...specs].flatMap(([type, { redact }]) => ('owner' in redact ? [type] : [])),
);

/** Returns whether an event names the process that published it: kept events about starts and tool calls do. */
export function hasOrigin(event: RunEventBody): boolean {
  return withOwner.has(event.type) && keepOf(event) !== 'passing';
}
