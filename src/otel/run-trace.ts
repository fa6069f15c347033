import {
  type Attributes,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import type { ObservedRun, WatchedExecutor } from '../index.ts';
import { attemptSpanId, callSpanId, type SpanPlace, type TracePlace } from './ids.ts';
import { genAi, hostAttributes, nameOfSpan, operations, own } from './names.ts';

/** What spans have, and where runs begin. */
export interface TraceOptions {
  /** The span of the code that starts a run is its parent. */
  readonly joins: boolean;
  /** Spans have contents of at most so many characters; undefined = they have none. */
  readonly contentChars: number | undefined;
  /** The host's own attributes of an attempt. */
  readonly attributes: ((run: ObservedRun) => unknown) | undefined;
  readonly warn: WatchedExecutor['warn'];
}

/** What all traces of a process share. */
export interface SharedByTraces {
  /** The ids of calls that began a run in this process. */
  readonly parents: ReadonlySet<string>;
  readonly options: TraceOptions;
  readonly start: (tracer: Tracer, wished: WishedSpan, started: Started) => Span;
}

/** Where a span that begins is to be. */
export interface WishedSpan {
  readonly place: TracePlace;
  /** Undefined: a random one. */
  readonly spanId: string | undefined;
}

/** What the trace of a run has besides the run. */
interface Standing {
  readonly place: TracePlace;
  readonly tracer: Tracer;
  readonly shared: SharedByTraces;
}

/** A span that begins. */
export interface Started extends SpanOptions {
  readonly name: string;
  /** Undefined: the span is the root of its trace. */
  readonly parent?: SpanContext | undefined;
}

/** A tool call, by one of its starts. */
interface StartedCall {
  readonly callId: string;
  readonly name: string;
  readonly effect: string;
  readonly step: number;
  readonly attempt: number;
}

/** The trace of one run: its place in it, and the spans that each process names alike. */
export class RunTrace {
  readonly run: ObservedRun;
  readonly #place: TracePlace;
  readonly #tracer: Tracer;
  readonly #shared: SharedByTraces;

  constructor(run: ObservedRun, { place, tracer, shared }: Standing) {
    this.run = run;
    this.#place = place;
    this.#tracer = tracer;
    this.#shared = shared;
  }

  get options(): TraceOptions {
    return this.#shared.options;
  }

  /** Begins a span. @param options.spanId the id that it gets; absent = a random one */
  start({ spanId, ...started }: Started & { readonly spanId?: string }): Span {
    return this.#shared.start(this.#tracer, { place: this.#place, spanId }, started);
  }

  /** Returns whether the span of another run is below this one. */
  isAbove(span: Span): boolean {
    return this.#shared.parents.has(span.spanContext().spanId);
  }

  /** Begins the span of an attempt. @param from wall clock, ms @param early the span, if it began before */
  startAttempt(attempt: number, from: number, early?: Span | undefined): Span {
    const { info, rootRunId } = this.run;
    const spanId = attemptSpanId(this.#place.traceId, info.runId, attempt);
    const opening = agentSpan(info.name, this.#linksOf(attempt));
    const started = { ...opening, spanId, startTime: from, parent: this.#above(attempt) };
    const span = early ?? this.start(started);
    return span.setAttributes({
      ...this.#hosts(),
      ...{ [own.agentId]: nameOfSpan(info.subjectId), [own.runId]: info.runId, [own.rootId]: rootRunId },
      [own.attempt]: attempt,
    });
  }

  /** The host's own attributes. */
  #hosts(): Attributes {
    const { attributes, warn } = this.options;
    try {
      return hostAttributes(attributes?.(this.run));
    } catch (error) {
      warn('callback.threw', { what: 'attributes of openTelemetry', error });
      return {};
    }
  }

  /** Begins the span of a tool call. @param from wall clock, ms */
  startCall(call: StartedCall, from: number, { attempt, parent }: { attempt: number; parent: Span }): Span {
    const { callId, name } = call;
    const start = { runId: this.run.info.runId, attempt, callId, callAttempt: call.attempt };
    return this.start({
      ...{ name: `${operations.tool} ${name}`, startTime: from, parent: parent.spanContext() },
      spanId: callSpanId(this.#place.traceId, start),
      attributes: {
        ...{ [genAi.operation]: operations.tool, [genAi.toolName]: nameOfSpan(name), [genAi.toolType]: 'function' },
        ...{
          [genAi.toolCallId]: nameOfSpan(callId),
          [own.toolAttempt]: call.attempt,
          [own.runId]: this.run.info.runId,
        },
        ...{ [own.toolEffect]: call.effect, [own.step]: call.step },
      },
    });
  }

  /**
   * Tells what a process that died could not: that it worked on the run, and which calls it had begun. How the run had come to that
   * process no record says.
   * @param code why this process parks the run; undefined = it continues the run
   */
  tellLost({ attempt, from, at, calls }: NonNullable<ObservedRun['previous']>, code?: string): void {
    const parked = code === undefined ? {} : { [own.status]: 'parked', [own.code]: code };
    const lost = this.startAttempt(attempt, from).setAttributes({ [own.attemptLost]: true, ...parked });
    for (const call of calls)
      endLost(this.startCall(call, at, { attempt, parent: lost }).setAttribute(own.toolLost, true), at);
    endLost(lost, at);
  }

  /** Returns the span of an attempt, of this process or another. */
  attemptSpan(attempt: number): SpanContext {
    const { traceId, isSampled } = this.#place;
    return remote({ traceId, spanId: attemptSpanId(traceId, this.run.info.runId, attempt), isSampled });
  }

  #linksOf(attempt: number): Link[] {
    const { caller } = this.#place;
    if (attempt === 1) return caller ? [linkTo('caller', remote(caller))] : [];
    // Attempts are counted by one.
    return [linkTo('previous', this.attemptSpan(attempt - 1))];
  }

  /** The span above an attempt: the call that began the run, or the first attempt. */
  #above(attempt: number): SpanContext | undefined {
    const { traceId, parentId, isSampled } = this.#place;
    if (attempt > 1) return this.attemptSpan(1);
    return parentId === undefined ? undefined : remote({ traceId, spanId: parentId, isSampled });
  }
}

function endLost(span: Span, at: number): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message: 'lost' });
  span.end(at);
}

/** Returns what the span of an attempt begins with. */
export function agentSpan(agentName: string, links: Link[]): Started {
  // From its start on: samplers and processors look at a span once.
  const attributes = { [genAi.operation]: operations.agent, [genAi.agentName]: nameOfSpan(agentName) };
  return { name: `${operations.agent} ${agentName}`, kind: SpanKind.INTERNAL, links, attributes };
}

/** Returns a link of an attempt. The caller is no parent: one that was not sampled drops no run. */
export function linkTo(what: 'caller' | 'previous', span: SpanContext): Link {
  return { context: span, attributes: { [own.link]: what } };
}

/** Returns a span of which only the ids are known. */
export function remote({ traceId, spanId, isSampled }: SpanPlace): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}
