import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { openTelemetry } from 'pawl/otel';

/** A meter provider, and what it has measured by metric, as `attributes: count or sum`. */
export function measuring() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e8, exportTimeoutMillis: 1e7 });
  const provider = new MeterProvider({ readers: [reader] });
  return {
    provider,
    tracing: openTelemetry({ meterProvider: provider, traces: false }),
    async read() {
      await reader.forceFlush();
      const metrics =
        exporter
          .getMetrics()
          .at(-1)
          ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
      const points = metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          name: descriptor.name,
          unit: descriptor.unit,
          attributes,
          value,
        })),
      );
      return {
        points,
        of: (name: string, attributes: object = {}) => {
          const found = points.filter((point) => point.name === name && includes(point.attributes, attributes));
          const sum = found.map(({ value }) =>
            typeof value === 'number' ? value : (value as { count: number }).count,
          );
          return sum.length === 0 ? undefined : sum.reduce((a, b) => a + b, 0);
        },
      };
    },
  };
}

const includes = (all: object, some: object) =>
  Object.entries(some).every(([key, value]) => (all as Record<string, unknown>)[key] === value);
