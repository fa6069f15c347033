import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import type { ObservedRun, Tracing, WatchedExecutor } from '../index.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import { Metrics } from './metrics.ts';
import type { TraceOptions } from './run-trace.ts';
import { Traces } from './traces.ts';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Default: the provider that is registered globally, now or later. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the provider that is registered globally, now or later. */
  readonly meterProvider?: MeterProvider;
  /**
   * `link` (the default): a run is a trace of its own, with a link to the span of the code that starts it. `join`: that span is its
   * parent, and its sampler decides. For callers that you trust: a `traceparent` of theirs chooses the trace.
   */
  readonly trace?: 'link' | 'join';
  /**
   * `true`: spans have the prompt and the answer of a run, what its model answers, and the arguments and results of its tools, after
   * `redact`. Default `false`: ids, names and codes only.
   */
  readonly content?: boolean;
  /** Most characters of one content; default 8,192. A longer one is cut, with `pawl.cut`. */
  readonly maxContentChars?: number;
  /**
   * Your own attributes for the spans of attempts: at most 32 texts of at most 256 characters, numbers and booleans. Names that
   * begin with `pawl.`, `gen_ai.` or `error.` are left out. Metrics do not have them.
   * @example attributes: ({ info }) => ({ 'app.tenant': info.labels?.tenant })
   */
  readonly attributes?: (run: ObservedRun) => { readonly [name: string]: string | number | boolean | undefined };
  /** `false`: no spans. */
  readonly traces?: boolean;
  /** `false`: no metrics. */
  readonly metrics?: boolean;
}

type Warn = WatchedExecutor['warn'];

/** Most characters of one content of a span. */
const MAX_CONTENT_CHARS = 8_192;

const optionKeys: KnownKeys<OpenTelemetryOptions> = {
  tracerProvider: true,
  meterProvider: true,
  trace: true,
  content: true,
  maxContentChars: true,
  attributes: true,
  traces: true,
  metrics: true,
};

/**
 * Sends traces and metrics of runs to OpenTelemetry, for the executor's option `tracing`. A run is one trace over all its
 * processes: the process that continues a run tells the spans of one that died. Without a registered provider it does nothing.
 * @throws {TypeError} for an unknown option, or one of the wrong type
 * @example
 * new NodeSDK({ idGenerator: runIds(), traceExporter: new OTLPTraceExporter() }).start();
 * const executor = createExecutor({ models, store, tracing: openTelemetry() });
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Tracing {
  const of = 'openTelemetry';
  checkKeys(options, optionKeys, { of });
  checkProvider(options.tracerProvider, `${of}: tracerProvider`, 'getTracer');
  checkProvider(options.meterProvider, `${of}: meterProvider`, 'getMeter');
  for (const name of ['traces', 'metrics', 'content'] as const)
    if (options[name] !== undefined && typeof options[name] !== 'boolean')
      throw new TypeError(`${of}: ${name} must be true or false, not ${kindOf(options[name])}`);
  const { trace = 'link', maxContentChars = MAX_CONTENT_CHARS } = options;
  if (trace !== 'link' && trace !== 'join')
    throw new TypeError(`${of}: trace must be 'link' or 'join', not ${JSON.stringify(trace)}`);
  if (options.attributes !== undefined && typeof options.attributes !== 'function')
    throw new TypeError(`${of}: attributes must be a function, not ${kindOf(options.attributes)}`);
  if (!Number.isSafeInteger(maxContentChars) || maxContentChars < 1)
    throw new TypeError(`${of}: maxContentChars must be a whole number above 0, not ${maxContentChars}`);
  let warn: Warn = () => {};
  const how: TraceOptions = {
    joins: trace === 'join',
    contentChars: options.content ? maxContentChars : undefined,
    attributes: options.attributes,
    warn: (event, fields) => warn(event, fields),
  };
  const traces = options.traces === false ? undefined : new Traces(options.tracerProvider, how);
  const metrics = options.metrics === false ? undefined : new Metrics(options.meterProvider);
  return Object.freeze<Tracing>({
    begin(run) {
      metrics?.look();
      return traces?.begin(run);
    },
    enter(call, next) {
      let made: Promise<unknown> | undefined;
      const ask = () => {
        made = next();
        return made;
      };
      if (traces) traces.enter(call, ask);
      else void ask();
      if (metrics?.isMeasuring && made && call.kind === 'model')
        metrics.askState(call, made).catch((error) => warn('callback.threw', { what: 'tracing', error }));
    },
    isIdle: () => !(traces?.isTracing || metrics?.isMeasuring),
    watch(executor) {
      warn = executor.warn;
      metrics?.watch(executor);
    },
    event(event, run) {
      traces?.event(event, run);
      metrics?.event(event, run);
    },
  });
}

function checkProvider(given: unknown, of: string, method: string): void {
  if (given === undefined) return;
  const found =
    typeof given === 'object' && given !== null ? (given as { [name: string]: unknown })[method] : undefined;
  if (typeof found !== 'function') throw new TypeError(`${of} must be a provider with ${method}, not ${kindOf(given)}`);
}
