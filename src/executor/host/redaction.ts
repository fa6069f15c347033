import type { InspectionEvent } from 'xstate';
import type { RunContext } from '../../../machines/context.ts';
import type { Logger } from '../../log/log.ts';
import { ProgressRedaction } from '../../record/redact-progress.ts';
import type { ReplyContent, RunEventBody } from '../../run/events/body.ts';
import { type FieldRedaction, runEventTable, specOf } from '../../run/events/table.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import { redactWait, type Wait } from '../../run/waits/wait.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { ToolOutput } from '../../values/message.ts';
import { type Redaction, Redactor } from '../../values/redact.ts';

type Delta = Extract<RunEventBody, { type: 'model.delta' }>;

/** A streamed line of more characters is passed on in pieces, split between two words if possible. */
const MAX_LINE = 4_096;

/** Redacts everything that leaves one run (events, logs, records) except its result, with the option `redact`. */
export class RunRedaction {
  readonly records: ProgressRedaction;
  readonly #events: Redactor;
  #line: Delta | undefined;
  /** How many redacted characters of a block were passed on. */
  #shown = { block: 0, chars: 0 };

  constructor(redact: Redaction) {
    this.records = new ProgressRedaction(new Redactor(redact, 'record'));
    this.#events = new Redactor(redact, 'event');
  }

  /**
   * Returns the events to publish for one. A model's text is passed on line by line: a secret arrives in pieces, and no single
   * piece looks like one. Of the arguments of a call only their beginning is: in JSON text a secret has another spelling.
   */
  events(body: RunEventBody): readonly RunEventBody[] {
    if (body.type === 'model.delta') return this.#said(body);
    if (body.type === 'tool.input') return body.offset === 0 ? [{ ...body, text: '' }] : [];
    const before = specOf(body).endsText ? this.#endLine() : [];
    if (body.type === 'step.started' || body.type === 'step.reset') this.#shown = { block: 0, chars: 0 };
    return [...before, redactedEvent(body, this.#events)];
  }

  /** Returns an event that has no text of a model's stream, as it may be shown. */
  event<Body extends RunEventBody>(body: Body): Body {
    return redactedEvent(body, this.#events);
  }

  /** Returns the events to publish when no more text of a block comes. */
  endText(block: number): readonly RunEventBody[] {
    return this.#line?.block === block ? this.#endLine() : [];
  }

  info(info: RunInfo, where: 'record' | 'event'): RunInfo {
    if (where === 'event') {
      return Object.freeze({ ...info, prompt: this.#events.text(info.prompt), inputs: this.#events.json(info.inputs) });
    }
    return Object.freeze({ ...info, prompt: this.records.text(info.prompt) });
  }

  /** Redacts the output for the audit. */
  output(output: RunOutput): RunOutput {
    const text = this.#events.text(output.output);
    if (output.status === 'ok') return { ...output, output: text };
    return { ...output, output: text, error: this.#events.error(output.error) };
  }

  /** Texts come in the order of blocks: one of the next block ends the line. */
  #said(delta: Delta): readonly RunEventBody[] {
    const isSame = this.#line?.block === delta.block && this.#line.step === delta.step;
    const before = isSame ? [] : this.#endLine();
    const text = (isSame ? (this.#line?.text ?? '') : '') + delta.text;
    const end = text.lastIndexOf('\n') + 1 || (text.length > MAX_LINE ? text.lastIndexOf(' ') + 1 || text.length : 0);
    this.#line = { ...delta, text: text.slice(end) };
    return end === 0 ? before : [...before, this.#redacted({ ...delta, text: text.slice(0, end) })];
  }

  #endLine(): readonly RunEventBody[] {
    const line = this.#line;
    this.#line = undefined;
    return line && line.text !== '' ? [this.#redacted(line)] : [];
  }

  /** A redacted piece; its offset counts what readers got. */
  #redacted(piece: Delta): RunEventBody {
    const { block } = piece;
    const offset = this.#shown.block === block ? this.#shown.chars : 0;
    const event = redactedEvent({ ...piece, offset }, this.#events);
    this.#shown = { block, chars: offset + event.text.length };
    return event;
  }
}

/** Returns a run's progress and output redacted, as the snapshot of a host's machine may have them. */
export function redactedRun(
  { progress, output }: Pick<RunContext, 'progress' | 'output'>,
  redact: Redaction | undefined,
): { readonly progress: Progress; readonly output: RunOutput | undefined } {
  if (!redact) return { progress, output };
  const records = new ProgressRedaction(new Redactor(redact, 'record'));
  return { progress: records.progress(progress), output: output && records.outcome(output) };
}

/** Fields that name the run, and hold none of its content. */
const named = new Set(['event', 'level', 'runId', 'agentId', 'traceId', 'code', 'callId']);

/** Wraps a logger so that it gets only redacted texts. */
export function redactedLogger(logger: Logger, redact: Redaction | undefined): Logger {
  if (!redact) return logger;
  const redactor = new Redactor(redact, 'log');
  const redacted = (write: Logger['warn']): Logger['warn'] => {
    return (message, fields) => write(redactor.text(message), copyOf(fields, redactor) as typeof fields);
  };
  return {
    warn: redacted((...line) => logger.warn(...line)),
    ...(logger.error ? { error: redacted((...line) => logger.error?.(...line)) } : {}),
    ...(logger.info ? { info: redacted((...line) => logger.info?.(...line)) } : {}),
  };
}

/**
 * Wraps an inspector of XState so that it gets redacted JSON copies. Events and snapshots are small, since they hold no
 * transcripts. Of an actor it gets a view, whose snapshot is such a copy too.
 */
export function redactedInspect(
  inspect: ((event: InspectionEvent) => void) | undefined,
  redact: Redaction | undefined,
): ((event: InspectionEvent) => void) | undefined {
  if (!inspect || !redact) return inspect;
  const redactor = new Redactor(redact, 'frame');
  const viewOf = actorViews(redactor);
  return (event) => {
    const copies = Object.entries(event).flatMap(([key, value]) => {
      if (key === 'actorRef' || key === 'sourceRef') return [[key, viewOf(value)]];
      const isContent = key === 'event' || key === 'snapshot' || key === 'action' || key === '_transitions';
      return isContent ? [[key, copyOf(value, redactor)]] : [];
    });
    inspect({ ...event, ...Object.fromEntries(copies) });
  };
}

/** Returns a function that makes the view of an actor: the actor, but for the content of its snapshot. The same view each time. */
function actorViews(redactor: Redactor): (actor: unknown) => unknown {
  const views = new WeakMap<object, object>();
  const viewOf = (actor: unknown): unknown => {
    if (typeof actor !== 'object' || actor === null) return actor;
    const live = actor as { getSnapshot?: () => unknown; _parent?: unknown };
    const copy = () => copyOf(live.getSnapshot?.(), redactor);
    const view =
      views.get(actor) ??
      Object.create(actor, {
        getSnapshot: { value: copy },
        _snapshot: { get: copy },
        _parent: { get: () => viewOf(live._parent) },
      });
    views.set(actor, view);
    return view;
  };
  return viewOf;
}

/** A value as JSON, its texts redacted; undefined if it cannot be read. */
function copyOf(value: unknown, redactor: Redactor): unknown {
  const change = (key: string, item: unknown) =>
    typeof item === 'string' && !named.has(key) ? redactor.text(item) : item;
  try {
    const text = JSON.stringify(value, change);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns a redacted copy of an event. Numbers and flags stay. A field without a row is left out, and an event without a row
 * keeps only numbers: another version may have put anything there.
 */
export function redactedEvent<Event extends RunEventBody>(event: Event, redactor: Redactor): Event {
  const isKnown = Object.hasOwn(runEventTable, event.type);
  const { redact: rows } = specOf(event);
  const copy: Record<string, unknown> = { type: event.type };
  for (const [field, value] of Object.entries(event)) {
    if (typeof value === 'number' || (isKnown && typeof value === 'boolean')) copy[field] = value;
    else if (field !== 'type' && value !== undefined && Object.hasOwn(rows, field))
      copy[field] = redactedField(value, rows[field] as FieldRedaction, redactor);
  }
  return copy as Event;
}

function redactedField(value: unknown, how: FieldRedaction, redactor: Redactor): unknown {
  if (how === 'public') return value;
  if (how === 'text') return redactor.text(value as string);
  if (how === 'json') return redactor.json(value);
  if (how === 'content') return redactor.message({ role: 'assistant', content: value as ReplyContent }).content;
  if (how === 'wait') return redactWait(value as Wait, redactor);
  return how === 'output' ? redactor.output(value as ToolOutput) : redactor.error(value as ErrorData);
}
