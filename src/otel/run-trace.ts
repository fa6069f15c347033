import {
  context,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import type { ObservedRun } from '../index.ts';
import { attemptSpanId, callSpanId, type TracePlace } from './ids.ts';
import { genAi, nameOf, operations, own } from './names.ts';

/** A span that begins. */
export interface Started extends SpanOptions {
  readonly name: string;
  /** Undefined: the span is the root of its trace. */
  readonly parent?: SpanContext | undefined;
}

/** Begins a span. `spanId`: the id that it gets; absent = a random one. */
type StartSpan = (options: Started & { readonly spanId?: string }) => Span;

/** A tool call, by one of its starts. */
interface StartedCall {
  readonly callId: string;
  readonly name: string;
  readonly attempt: number;
}

/** The trace of one run: its place in it, and the spans that each process names alike. */
export class RunTrace {
  readonly start: StartSpan;
  readonly run: ObservedRun;
  readonly #place: TracePlace;

  constructor(start: StartSpan, run: ObservedRun, place: TracePlace) {
    this.start = start;
    this.run = run;
    this.#place = place;
  }

  /** Begins the span of an attempt. @param from wall clock, ms @param early the span, if it began before */
  startAttempt(
    attempt: number,
    from: number,
    { links = [], early }: { links?: Link[]; early?: Span | undefined } = {},
  ): Span {
    const { info, origin, rootRunId } = this.run;
    const spanId = attemptSpanId(this.#place.traceId, info.runId, attempt);
    const started = { ...agentSpan(info.name, links), spanId, startTime: from, parent: this.#above(attempt) };
    const span = early ?? this.start(started);
    return span.setAttributes({
      ...{ [genAi.operation]: operations.agent, [genAi.agentName]: nameOf(info.name) },
      ...{ [own.agentId]: nameOf(info.subjectId), [own.runId]: info.runId, [own.rootId]: rootRunId },
      ...{ [own.origin]: origin, [own.attempt]: attempt },
    });
  }

  /** Begins the span of a tool call. @param from wall clock, ms */
  startCall(call: StartedCall, from: number, { attempt, parent }: { attempt: number; parent: Span }): Span {
    const { callId, name } = call;
    const start = { runId: this.run.info.runId, attempt, callId, callAttempt: call.attempt };
    return this.start({
      ...{ name: `${operations.tool} ${name}`, startTime: from, parent: parent.spanContext() },
      spanId: callSpanId(this.#place.traceId, start),
      attributes: {
        ...{ [genAi.operation]: operations.tool, [genAi.toolName]: nameOf(name), [genAi.toolType]: 'function' },
        ...{ [genAi.toolCallId]: nameOf(callId), [own.toolAttempt]: call.attempt, [own.runId]: this.run.info.runId },
      },
    });
  }

  /** Tells what a process that died could not: that it worked on the run, and which calls it had begun. */
  tellLost({ attempt, from, at, calls }: NonNullable<ObservedRun['previous']>): void {
    const lost = this.startAttempt(attempt, from).setAttribute(own.attemptLost, true);
    for (const call of calls)
      endLost(this.startCall(call, at, { attempt, parent: lost }).setAttribute(own.toolLost, true), at);
    endLost(lost, at);
  }

  /** Returns the span of an attempt, of this process or another. */
  attemptSpan(attempt: number): SpanContext {
    const { traceId, isSampled } = this.#place;
    return remote({ traceId, spanId: attemptSpanId(traceId, this.run.info.runId, attempt), isSampled });
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
  return { name: `${operations.agent} ${agentName}`, kind: SpanKind.INTERNAL, links };
}

/** Returns a link to the span of the code that starts a run. It is not the parent: one that was not sampled drops no run. */
export function callerLink(): Link[] {
  const caller = trace.getSpanContext(context.active());
  return caller ? [{ context: caller, attributes: { [own.link]: 'caller' } }] : [];
}

/** Returns a span of which only the ids are known. */
export function remote(of: { traceId: string; spanId: string; isSampled: boolean }): SpanContext {
  const { traceId, spanId, isSampled } = of;
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}
