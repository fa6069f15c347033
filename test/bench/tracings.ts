import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Tracing } from 'pawl';
import { openTelemetry, runIds } from 'pawl/otel';

/** `none`; `idle`: no provider is registered; `recording`: spans come to a batch processor, whose exporter drops them. */
export const tracings: { readonly [kind: string]: () => Tracing | undefined } = {
  none: () => undefined,
  idle: () => openTelemetry(),
  recording: () => {
    const exporter = {
      export: (_: unknown, done: (result: { code: 0 }) => void) => done({ code: 0 }),
      shutdown: async () => {},
    };
    const processor = new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1_000 });
    return openTelemetry({
      tracerProvider: new TracerProvider({ idGenerator: runIds(), spanProcessors: [processor] }),
      metrics: false,
    });
  },
};
