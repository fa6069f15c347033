// All events of a run, as a table: how each is redacted, audited and kept.
import type { ErrorData } from '../../values/error-data.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { Wait } from '../waits/wait.ts';
import type { ReplyContent, RunEvent, RunEventBody } from './body.ts';

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
type EventRows<Event> = {
  readonly [Field in keyof Event as Field extends 'type'
    ? never
    : NonNullable<Event[Field]> extends number | boolean
      ? never
      : Field]-?: RedactionOf<NonNullable<Event[Field]>>;
};

type Keep = 'kept' | 'with-save' | 'with-step' | 'passing';

/** Everything that Pawl knows of a type of events, besides its fields. */
interface EventSpec<Event> {
  readonly redact: EventRows<Event>;
  /** The method of an audit recorder that gets it; `log` = `logEvent`, `skip` = none. */
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
export const runEventTable = {
  'run.started': { redact: { owner: 'public' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.resumed': { redact: { owner: 'public', spend: 'public' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.left': { redact: { why: 'public', owner: 'public' }, audit: 'log', endsText: true, keep: 'with-save' },
  'run.status': { redact: { state: 'public' }, audit: 'skip', endsText: true, keep: 'none' },
  'run.parked': { redact: { code: 'public', reason: 'text', by: 'json' }, audit: 'log', endsText: true, keep: 'kept' },
  'run.unparked': { redact: { by: 'json' }, audit: 'log', endsText: false, keep: 'kept' },
  'run.retried': {
    redact: { status: 'public', error: 'error', by: 'json' },
    audit: 'skip',
    endsText: false,
    keep: 'kept',
  },
  'run.ended': {
    redact: { status: 'public', output: 'text', error: 'error' },
    audit: 'skip',
    endsText: true,
    keep: 'kept',
  },
  'step.started': { redact: {}, audit: 'skip', endsText: true, of: 'call', keep: 'passing' },
  'step.done': {
    redact: { usage: 'public', tools: 'public', finishReason: 'public', answer: 'json', spend: 'public' },
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
  'model.retry': {
    redact: { model: 'public', error: 'error' },
    audit: 'log',
    endsText: true,
    of: 'call',
    keep: 'passing',
  },
  'model.fallback': {
    redact: { from: 'public', to: 'public', error: 'error' },
    audit: 'log',
    endsText: true,
    keep: 'kept',
  },
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
  'call.unknown': {
    redact: { callId: 'public', name: 'public' },
    audit: 'log',
    endsText: false,
    of: 'step',
    keep: 'with-save',
  },
  'phase.started': { redact: { name: 'public' }, audit: 'phase', endsText: true, keep: 'kept' },
  'phase.done': { redact: { name: 'public', output: 'text' }, audit: 'phase', endsText: true, keep: 'with-step' },
  'phase.skipped': { redact: { name: 'public' }, audit: 'phase', endsText: false, keep: 'kept' },
  'steer.queued': { redact: {}, audit: 'log', endsText: false, keep: 'kept' },
  'steer.applied': { redact: { texts: 'json' }, audit: 'log', endsText: false, keep: 'with-save' },
  'wait.opened': { redact: { wait: 'wait', input: 'json' }, audit: 'log', endsText: true, of: 'step', keep: 'kept' },
  'wait.answered': {
    redact: {
      waitId: 'public',
      kind: 'public',
      how: 'public',
      by: 'json',
      note: 'text',
      wait: 'wait',
      callId: 'public',
    },
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
  'workflow.transition': {
    redact: { from: 'json', to: 'json', event: 'text', took: 'json' },
    audit: 'log',
    endsText: false,
    keep: 'with-save',
  },
  'workflow.ignored': { redact: { event: 'text', error: 'error' }, audit: 'log', endsText: false, keep: 'with-save' },
  'workflow.undelivered': {
    redact: { to: 'text', event: 'text', error: 'error' },
    audit: 'log',
    endsText: false,
    keep: 'with-save',
  },
  'workflow.emitted': { redact: { event: 'json' }, audit: 'log', endsText: false, keep: 'with-save' },
  'workflow.action-failed': {
    redact: { name: 'text', error: 'error' },
    audit: 'log',
    endsText: false,
    keep: 'passing',
  },
  'lease.lost': { redact: {}, audit: 'log', endsText: false, keep: 'none' },
  'checkpoint.saved': { redact: {}, audit: 'log', endsText: false, keep: 'none' },
  'checkpoint.failed': { redact: { error: 'error' }, audit: 'log', endsText: false, keep: 'none' },
  'events.dropped': { redact: {}, audit: 'skip', endsText: false, keep: 'none' },
} satisfies EventTable<RunEventBody>;

type Table = typeof runEventTable;
type With<Field extends keyof EventSpec<unknown>, Value> = {
  [Type in keyof Table]: Table[Type] extends { readonly [F in Field]: Value } ? Type : never;
}[keyof Table];

/** The events that the audit gets through one method. */
export type AuditedAs<Class extends EventSpec<unknown>['audit']> = Extract<
  RunEvent,
  { readonly type: With<'audit', Class> }
>;
/** The events that the critic takes as one kind of activity. */
type ActiveAs<Kind extends EventSpec<unknown>['activity']> = Extract<
  RunEvent,
  { readonly type: With<'activity', Kind> }
>;

/** A row without the type of its event. */
type AnySpec = Omit<EventSpec<never>, 'redact'> & { readonly redact: Readonly<Record<string, FieldRedaction>> };

const specs: ReadonlyMap<string, AnySpec> = new Map(Object.entries(runEventTable));
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
