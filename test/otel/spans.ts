import { SpanStatusCode, type Tracer } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type OpenTelemetryOptions, openTelemetry, runIds } from 'pawl/otel';

/** What one process, or several one after the other, export. */
export interface Collected {
  /** A tracer of a host's own code. */
  readonly tracer: () => Tracer;
  readonly spans: () => readonly ReadableSpan[];
  /** The tracing of one process, which exports its spans here. */
  readonly process: (options?: OpenTelemetryOptions, life?: Mortal) => ReturnType<typeof openTelemetry>;
}

/** A process that may die: what it ends then is not exported any more. */
interface Mortal {
  readonly isDead: boolean;
}

/** Collects the spans of several processes. */
export function collecting(ids: boolean = true): Collected {
  const exporter = new InMemorySpanExporter();
  const simple = new SimpleSpanProcessor({ exporter });
  const process = (options: OpenTelemetryOptions = {}, life: Mortal = { isDead: false }) => {
    const living: SpanProcessor = {
      onStart: () => {},
      onEnd: (span) => (life.isDead ? undefined : simple.onEnd(span)),
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    const provider = new TracerProvider({ spanProcessors: [living], ...(ids ? { idGenerator: runIds() } : {}) });
    return openTelemetry({ tracerProvider: provider, metrics: false, ...options });
  };
  const tracer = () => new TracerProvider({ spanProcessors: [simple] }).getTracer('own');
  return { spans: () => exporter.getFinishedSpans(), process, tracer };
}

/**
 * Returns what is wrong with exported spans: more than one trace, a parent that is missing, an id that comes twice.
 * @param ended runs that a process had ended when it died: no process finds their records, and tells their last attempt
 */
export function faultsOf(spans: readonly ReadableSpan[], ended: ReadonlySet<unknown> = new Set()): readonly string[] {
  const ids = spans.map((span) => span.spanContext().spanId);
  const traces = new Set(spans.map((span) => span.spanContext().traceId));
  const orphans = spans.filter(
    ({ parentSpanContext: parent, attributes }) =>
      parent && !ids.includes(parent.spanId) && !ended.has(attributes['pawl.run.id']),
  );
  return [
    ...(traces.size > 1 ? [`${traces.size} traces`] : []),
    ...orphans.map(({ name }) => `no parent: ${name}`),
    ...spans
      .filter((_, i) => ids.indexOf(ids[i] as string) !== i)
      .map(({ name, attributes }) => `twice: ${name} ${JSON.stringify(attributes)}`),
  ];
}

/** Returns the status of a span in one text. */
export function statusOf({ status }: ReadableSpan): string {
  if (status.code === SpanStatusCode.UNSET) return 'unset';
  return `${status.code === SpanStatusCode.ERROR ? 'error' : 'ok'} ${status.message ?? ''}`.trim();
}

/** Returns spans as a tree of names, each child two places further in, in the order of their starts. */
export function treeOf(spans: readonly ReadableSpan[], parent?: string, depth = 0): readonly string[] {
  const below = spans.filter((span) => span.parentSpanContext?.spanId === parent);
  return below
    .toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...treeOf(spans, span.spanContext().spanId, depth + 1)]);
}
