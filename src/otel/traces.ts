import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import type { ObservedRun, RunEvent, TracedCall, TracedRun } from '../index.ts';
import {
  attemptSpanId,
  callSpanId,
  placeInTrace,
  placeText,
  type SpanPlace,
  type TracePlace,
  traceIdOf,
  withIds,
} from './ids.ts';
import { nameOfSpan } from './names.ts';
import { RunSpans } from './run-spans.ts';
import {
  agentSpan,
  linkTo,
  RunTrace,
  remote,
  type SharedByTraces,
  type Started,
  type TraceOptions,
  type WishedSpan,
} from './run-trace.ts';

/** Most roots that wait for the first event of their run. */
const MAX_EARLY = 1_000;

/** Most calls that are known to have begun a run. */
const MAX_PARENTS = 1_000;

/** The name under which spans and metrics come. */
export const SCOPE = 'pawl';

/** The traces of the runs of one process. */
export class Traces {
  readonly #provider: TracerProvider | undefined;
  readonly #options: TraceOptions;
  readonly #shared: SharedByTraces;
  /** The spans of each run at work here. */
  readonly #runs = new WeakMap<ObservedRun, RunSpans>();
  /** Root spans that began with their trace, by trace id: their runs have not said anything yet. */
  readonly #early = new Map<string, Span>();
  /** The ids of the spans of calls that began a run: the newest. */
  readonly #parents = new Set<string>();
  /** Whether spans get the ids that Pawl wishes; undefined = it has not been seen. */
  #hasIds: boolean | undefined;

  /** @param provider default: the one that is registered globally */
  constructor(provider: TracerProvider | undefined, options: TraceOptions) {
    this.#provider = provider;
    this.#options = options;
    this.#shared = { parents: this.#parents, options, start: this.#start.bind(this) };
  }

  /** Whether a provider is there. */
  get isTracing(): boolean {
    return this.#provider !== undefined || this.#tracer() !== undefined;
  }

  /** Returns the text that the record of a run keeps; undefined while no provider is there. */
  begin({ runId, birth, agentName, parent }: TracedRun): string | undefined {
    const tracer = this.#tracer();
    if (!tracer) return undefined;
    const above = parent && placeInTrace(parent.trace);
    if (parent && above) {
      const { traceId, isSampled } = above;
      return placeText({ traceId, parentId: callSpanId(traceId, parent), isSampled });
    }
    const active = trace.getSpanContext(context.active());
    const caller = active && isSpanContextValid(active) ? active : undefined;
    if (caller && this.#options.joins) {
      const { traceId, spanId, isSampled } = placeOf(caller);
      return placeText({ traceId, parentId: spanId, isSampled });
    }
    const traceId = traceIdOf(runId, birth);
    const place = { traceId, parentId: undefined, isSampled: false };
    // The sampler decides once, at the first span: each later process follows it.
    const spanId = attemptSpanId(traceId, runId, 1);
    const root = this.#start(tracer, { place, spanId }, agentSpan(agentName, caller ? [linkTo('caller', caller)] : []));
    if (this.#early.size >= MAX_EARLY) this.#early.delete(this.#early.keys().next().value as string);
    this.#early.set(traceId, root);
    const { isSampled } = placeOf(root.spanContext());
    return placeText({ ...place, isSampled, caller: caller && placeOf(caller) });
  }

  /** Makes a call in the context of its span. */
  enter(call: TracedCall, next: () => Promise<unknown>): void {
    const spans = this.#runs.get(call.run);
    if (spans) spans.enter(call, next);
    else void next();
  }

  event(event: RunEvent, run: ObservedRun): void {
    const spans = this.#runs.get(run) ?? this.#begun(event, run);
    if (spans?.take(event)) this.#runs.delete(run);
  }

  /** The spans of an attempt that begins with this event. */
  #begun(event: RunEvent, run: ObservedRun): RunSpans | undefined {
    const { type, at } = event;
    const isSetAside = type === 'run.parked' && run.attempt === undefined;
    if (type !== 'run.started' && type !== 'run.resumed' && !isSetAside) return undefined;
    const place = placeInTrace(run.trace);
    const tracer = this.#tracer();
    // A run that was not sampled at first is traced by no later process.
    if (!tracer || !place?.isSampled) return undefined;
    const runTrace = new RunTrace(run, { place, tracer, shared: this.#shared });
    const { attempt, previous } = run;
    if (previous?.how === 'lost' && !previous.told) runTrace.tellLost(previous, isSetAside ? event.code : undefined);
    // A run whose end is recorded is only delivered, and one that is parked at its start is not worked on.
    if (attempt === undefined) return undefined;
    if (run.parent && place.parentId !== undefined) this.#noteParent(place.parentId);
    const spans = new RunSpans(runTrace, { attempt, at, early: this.#takeEarly(place, attempt) });
    this.#runs.set(run, spans);
    return spans;
  }

  #noteParent(spanId: string): void {
    if (this.#parents.size >= MAX_PARENTS) this.#parents.delete(this.#parents.values().next().value as string);
    this.#parents.add(spanId);
  }

  #takeEarly({ traceId, parentId }: TracePlace, attempt: number): Span | undefined {
    const root = this.#early.get(traceId);
    if (!root || attempt !== 1 || parentId !== undefined) return undefined;
    this.#early.delete(traceId);
    return root;
  }

  #start(tracer: Tracer, wished: WishedSpan, { name, parent, ...options }: Started): Span {
    const { traceId } = wished.place;
    const { spanId } = wished;
    // Without ids of its own the root gets its trace from a parent that no process exports.
    const isNamed = this.#hasIds !== false || spanId === undefined;
    const above = parent ?? (isNamed ? undefined : remote({ traceId, spanId, isSampled: true }));
    const at = above ? trace.setSpanContext(ROOT_CONTEXT, above) : ROOT_CONTEXT;
    const start = () => tracer.startSpan(nameOfSpan(name), options, at);
    if (spanId === undefined) return start();
    const span = withIds({ traceId, spanId }, start);
    if (this.#hasIds !== undefined || !span.isRecording()) return span;
    this.#see(span.spanContext().spanId === spanId);
    return this.#hasIds ? span : this.#start(tracer, wished, { name, parent, ...options });
  }

  #see(hasIds: boolean): void {
    this.#hasIds = hasIds;
    if (!hasIds) this.#options.warn('tracing.ids.missing');
  }

  /** Undefined while no provider is registered. */
  #tracer(): Tracer | undefined {
    if (this.#provider) return this.#provider.getTracer(SCOPE);
    const provider = trace.getTracerProvider() as TracerProvider & Partial<Proxied>;
    // The provider of the API stands for one that is registered later.
    return provider.getDelegateTracer ? provider.getDelegateTracer(SCOPE) : provider.getTracer(SCOPE);
  }
}

/** What the provider of the API has besides. */
interface Proxied {
  getDelegateTracer(name: string): Tracer | undefined;
}

function placeOf({ traceId, spanId, traceFlags }: SpanContext): SpanPlace {
  return { traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 };
}
