import { SpanStatusCode, type Tracer } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { RunCheckpoint } from 'pawl';
import { type OpenTelemetryOptions, openTelemetry, runIds } from 'pawl/otel';
import { attemptSpanId, callSpanId } from '../../src/otel/ids.ts';
import { traceIdIn } from '../../src/run/attempt.ts';

/** What one process, or several one after the other, export. */
export interface Collected {
  /** A tracer of a host's own code. */
  readonly tracer: () => Tracer;
  readonly spans: () => readonly ReadableSpan[];
  /** What a living process began, no process has ended, and none has told. */
  readonly open: () => readonly string[];
  /** The process that exported a span. */
  readonly exporterOf: (span: ReadableSpan) => unknown;
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
  const exporters = new WeakMap<ReadableSpan, Mortal>();
  const begun = new Map<string, { readonly name: string; readonly life: Mortal }>();
  const process = (options: OpenTelemetryOptions = {}, life: Mortal = { isDead: false }) => {
    const living: SpanProcessor = {
      onStart: (span) => void begun.set(span.spanContext().spanId, { name: span.name, life }),
      onEnd: (span) => {
        if (life.isDead) return;
        begun.delete(span.spanContext().spanId);
        exporters.set(span, life);
        simple.onEnd(span);
      },
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    const provider = new TracerProvider({ spanProcessors: [living], ...(ids ? { idGenerator: runIds() } : {}) });
    return openTelemetry({ tracerProvider: provider, metrics: false, ...options });
  };
  const tracer = () => new TracerProvider({ spanProcessors: [simple] }).getTracer('own');
  const open = () => {
    const told = new Set(exporter.getFinishedSpans().map((span) => span.spanContext().spanId));
    return [...begun].flatMap(([id, { name, life }]) => (life.isDead || told.has(id) ? [] : [name]));
  };
  const exporterOf = (span: ReadableSpan) => exporters.get(span);
  return { spans: () => exporter.getFinishedSpans(), open, exporterOf, process, tracer };
}

/** What no process can know, because another one died in the instant after a write. */
export interface Unknowable {
  /** The runs that had ended: no process finds their records, and tells their last attempt. */
  readonly ended: ReadonlySet<unknown>;
  /** The spans of attempts that had left their run, waited or ended their slice: they are not lost. */
  readonly left: ReadonlySet<string>;
}

/**
 * Spans of attempts that had left their run, of calls that had begun to wait, and of lost attempts for which the run was parked, when
 * their process died before it could say so: no record tells of them.
 */
export function leftSpans({ attempt, trace, meta: { runId }, openStep }: RunCheckpoint): readonly string[] {
  const traceId = traceIdIn(trace);
  if (!traceId || !attempt) return [];
  const isOver = attempt.ended !== undefined || attempt.told !== undefined;
  const calls = (openStep?.calls ?? []).filter(({ state }) => isOver || state === 'waiting');
  return [
    ...(isOver ? [attemptSpanId(traceId, runId, attempt.number)] : []),
    ...calls.map(({ callId, attempt: callAttempt }) =>
      callSpanId(traceId, { runId, attempt: attempt.number, callId, callAttempt }),
    ),
  ];
}

const nothing: Unknowable = { ended: new Set(), left: new Set() };

/**
 * Returns what is wrong with exported spans: more than one trace, a parent or a link that is missing, an id that comes twice, an attempt
 * that is missing, a span that a living process has not ended, a time outside that of its parent.
 */
export function faultsOf(
  collected: Pick<Collected, 'spans' | 'open' | 'exporterOf'>,
  but: Unknowable = nothing,
): readonly string[] {
  const spans = collected.spans();
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
  const traces = new Set(spans.map((span) => span.spanContext().traceId));
  return [
    ...(traces.size > 1 ? [`${traces.size} traces`] : []),
    ...collected.open().map((name) => `not ended: ${name}`),
    ...spans.filter((span) => !isOnce(span, byId)).map((span) => `twice: ${nameOf(span)}`),
    ...spans.flatMap((span) => faultsOfPlace(span, byId, but)),
    ...spans.flatMap((span) => faultsOfTime(span, byId, collected.exporterOf)),
    ...missingAttempts(spans, but),
  ];
}

/**
 * In a crash loop no record says that a lost attempt was reported: it is reported again, with the same spans. A call that began a run ends before its
 * result is stored: a process that dies between both has told its end, and the next one tells that it is lost.
 */
function isOnce(span: ReadableSpan, byId: ReadonlyMap<string, ReadableSpan>): boolean {
  const other = byId.get(span.spanContext().spanId) as ReadableSpan;
  if (other === span || (isLost(span) && asTold(span) === asTold(other))) return true;
  return span.name.startsWith('execute_tool agent__') && isLost(span) !== isLost(other);
}

const asTold = ({ name, startTime, endTime, attributes }: ReadableSpan): string =>
  JSON.stringify([name, startTime, endTime, attributes['pawl.attempt'], attributes['pawl.tool.attempt']]);

function faultsOfPlace(span: ReadableSpan, byId: ReadonlyMap<string, ReadableSpan>, but: Unknowable): string[] {
  const parentId = span.parentSpanContext?.spanId;
  const isMissing = (spanId: string) => !byId.has(spanId) && !but.left.has(spanId);
  const isKnown = isAttempt(span) || !but.ended.has(span.attributes['pawl.run.id']);
  const isLinked = ({ context, attributes }: ReadableSpan['links'][number]) =>
    attributes?.['pawl.link'] !== 'previous' || !isMissing(context.spanId);
  return [
    ...(parentId !== undefined && isMissing(parentId) && isKnown ? [`no parent: ${nameOf(span)}`] : []),
    ...(span.links.every(isLinked) ? [] : [`no span of a link: ${nameOf(span)}`]),
  ];
}

/** A process that recorded nothing of its attempt exports what is below the attempt of the next one, and before it. */
function faultsOfTime(
  span: ReadableSpan,
  byId: ReadonlyMap<string, ReadableSpan>,
  exporterOf: Collected['exporterOf'],
): string[] {
  const above = span.parentSpanContext && byId.get(span.parentSpanContext.spanId);
  const isOutside = above && exporterOf(above) === exporterOf(span) && !isWithin(span, above);
  return [
    ...(timeOf(span.endTime) < timeOf(span.startTime) ? [`ends before it begins: ${nameOf(span)}`] : []),
    ...(isOutside ? [`not within its parent: ${nameOf(span)} of ${nameOf(above)}`] : []),
  ];
}

/** Spans of Pawl begin and end at whole milliseconds, those of requests between them. */
const ROUNDING_MS = 2;

/** A later attempt is below the first one, and after it. When a lost call began, no record says. */
function isWithin(span: ReadableSpan, above: ReadableSpan): boolean {
  const isLater = isAttempt(span) && Number(span.attributes['pawl.attempt']) > 1;
  if (isLost(above)) return true;
  if (timeOf(span.startTime) < timeOf(above.startTime)) return false;
  return isLater || timeOf(span.endTime) <= timeOf(above.endTime) + ROUNDING_MS;
}

/** Attempts are counted by one: each that came before another one is exported. */
function missingAttempts(spans: readonly ReadableSpan[], but: Unknowable): string[] {
  const ids = new Set(spans.map((span) => span.spanContext().spanId));
  return spans.filter(isAttempt).flatMap((span) => {
    const { attributes } = span;
    const numbers = Array.from({ length: Number(attributes['pawl.attempt']) }, (_, at) => at + 1);
    const { traceId } = span.spanContext();
    const missing = numbers.filter((number) => {
      const id = attemptSpanId(traceId, String(attributes['pawl.run.id']), number);
      return !ids.has(id) && !but.left.has(id);
    });
    return missing.map((number) => `no attempt ${number} of ${attributes['pawl.run.id']}`);
  });
}

const isAttempt = ({ name }: ReadableSpan): boolean => name.startsWith('invoke_agent');
const isLost = ({ attributes }: ReadableSpan): boolean =>
  attributes['pawl.attempt.lost'] === true || attributes['pawl.tool.lost'] === true;
const timeOf = ([seconds, nanos]: ReadableSpan['startTime']): number => seconds * 1_000 + nanos / 1e6;
const nameOf = ({ name, attributes }: ReadableSpan): string => `${name} ${JSON.stringify(attributes)}`;

/** Returns the names of spans that a backend drops which gets them in random order, and keeps none whose parent does not come. */
export function droppedOf(
  collected: Pick<Collected, 'spans'>,
  random: () => number,
  but: Unknowable = nothing,
): readonly string[] {
  const order = collected.spans().map((span) => ({ span, at: random() }));
  const kept = new Set(but.left);
  let waiting = order.toSorted((a, b) => a.at - b.at).map(({ span }) => span);
  for (let before = -1; before !== kept.size; ) {
    before = kept.size;
    waiting = waiting.filter((span) => {
      const { parentSpanContext: above } = span;
      const isIn = !above || kept.has(above.spanId);
      if (isIn) kept.add(span.spanContext().spanId);
      return !isIn;
    });
  }
  return waiting.filter(({ attributes }) => !but.ended.has(attributes['pawl.run.id'])).map(({ name }) => name);
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
