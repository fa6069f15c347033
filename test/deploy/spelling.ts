import { type MetricRow, metricTable } from '../../src/otel/metric-table.ts';

/** All metrics by name. */
export const metrics: ReadonlyMap<string, MetricRow> = new Map(Object.entries(metricTable));
const attributes = new Set([...metrics.values()].flatMap((row) => row.attributes));

/** How a metric comes to Prometheus: scraped from the exporter of the SDK, or sent by OTLP. `both`: a query that takes either. */
export type Way = 'scrape' | 'otlp' | 'both';

/** A name of the table, with the part of a histogram, and where its labels begin. */
const dotted = /([a-z_]+(?:\.[a-z_]+)+)(\{?)/g;
const parts = ['_count', '_sum', '_bucket'];

/**
 * Spells a query with the names of the table as Prometheus has them.
 * @throws {Error} for a name that is not in the table
 */
export function spelled(query: string, way: Way): string {
  return query.replace(dotted, (_, name: string, labels: string) => {
    if (attributes.has(name)) return `${underscored(name)}${labels}`;
    const part = parts.find((each) => name.endsWith(each) && !metrics.has(name)) ?? '';
    const found = metricName(part === '' ? name : name.slice(0, -part.length), part, way);
    // A query that takes two names has them among its labels.
    return labels !== '' && found.endsWith('}') ? `${found.slice(0, -1)}, ` : `${found}${labels}`;
  });
}

function metricName(name: string, part: string, way: Way): string {
  const row = metrics.get(name);
  if (!row) throw new Error(`${name} is no metric and no attribute of the table`);
  const plain = underscored(name);
  const end = row.kind === 'counter' ? '_total' : part;
  // Units that are annotations, as {run}, have no suffix.
  if (row.unit !== 's' || way === 'scrape') return `${plain}${end}`;
  return way === 'otlp' ? `${plain}_seconds${end}` : `{__name__=~"${plain}(_seconds)?${end}"}`;
}

const underscored = (name: string) => name.replaceAll('.', '_');
