import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MetricRow, metricTable } from '../../src/otel/metric-table.ts';

const BEGIN = '<!-- Made by `npm run docs`: -->';
const END = '<!-- Up to here. -->';

/** docs/traces-and-metrics.md with its table of metrics as the code has them today. */
export function metricsPage(root: string): string {
  const page = readFileSync(join(root, 'docs/traces-and-metrics.md'), 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error('docs/traces-and-metrics.md has no place for the table of metrics');
  const rows = Object.entries(metricTable as Readonly<Record<string, MetricRow>>).map(
    ([name, { kind, unit, attributes, means }]) =>
      `| \`${name}\` | ${kind}, ${unit} | ${attributes.map((each) => `\`${each}\``).join(', ')} | ${means} |`,
  );
  const table = ['| metric | kind | attributes | what it measures |', '| --- | --- | --- | --- |', ...rows].join('\n');
  return `${page.slice(0, begin)}${BEGIN}\n\n${table}\n\n${page.slice(end)}`;
}
