import { diag, type MeterProvider, type TracerProvider } from '@opentelemetry/api';
import type { Tracing } from '../index.ts';
import { checkKeys, kindOf } from '../values/known-options.ts';
import { Metrics } from './metrics.ts';
import { Traces } from './traces.ts';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Default: the provider that is registered globally, now or later. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the provider that is registered globally, now or later. */
  readonly meterProvider?: MeterProvider;
  /** `false`: no spans. */
  readonly traces?: boolean;
  /** `false`: no metrics. */
  readonly metrics?: boolean;
}

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
  checkKeys(options, { tracerProvider: true, meterProvider: true, traces: true, metrics: true }, { of });
  checkProvider(options.tracerProvider, `${of}: tracerProvider`, 'getTracer');
  checkProvider(options.meterProvider, `${of}: meterProvider`, 'getMeter');
  for (const name of ['traces', 'metrics'] as const)
    if (options[name] !== undefined && typeof options[name] !== 'boolean')
      throw new TypeError(`${of}: ${name} must be true or false, not ${kindOf(options[name])}`);
  const traces = options.traces === false ? undefined : new Traces(options.tracerProvider);
  const metrics = options.metrics === false ? undefined : new Metrics(options.meterProvider);
  return Object.freeze<Tracing>({
    begin: (run) => traces?.begin(run),
    enter(call, next) {
      let made: Promise<unknown> | undefined;
      const ask = () => {
        made = next();
        return made;
      };
      if (traces) traces.enter(call, ask);
      else void ask();
      if (metrics?.isMeasuring && made && call.kind === 'model')
        metrics.asked(call, made).catch((error) => diag.error('pawl/otel: a model request was not measured', error));
    },
    watch: (executor) => metrics?.watch(executor),
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
