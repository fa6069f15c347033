import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exitCodeTable } from '../../src/cli/ui/exit-codes.ts';
import { type LogRow, logTable } from '../../src/log/table.ts';
import { type MetricRow, metricTable } from '../../src/otel/metric-table.ts';
import { dashboardFile } from '../deploy/dashboard.ts';
import { alerts, anchorOf, rulesFile } from '../deploy/rules.ts';
import { spelled } from '../deploy/spelling.ts';

/** The generated files of docs/deploy, by their names. */
export const deployFiles: { readonly [name: string]: () => string } = {
  'pawl.rules.yml': () => rulesFile('scrape'),
  'pawl.otlp.rules.yml': () => rulesFile('otlp'),
  'pawl.dashboard.json': dashboardFile,
};

const BEGIN = '<!-- Made by `npm run docs`: -->';
const END = '<!-- Up to here. -->';

/** A page with the table between its two marks as the code has it today. */
function pageWith(root: string, page: string, rows: readonly (readonly string[])[]): string {
  const text = readFileSync(join(root, page), 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`${page} has no place for its table`);
  const lines = rows.map((row) => `| ${row.join(' | ')} |`);
  lines.splice(1, 0, `| ${rows[0]?.map(() => '---').join(' | ')} |`);
  return `${text.slice(0, begin)}${BEGIN}\n\n${lines.join('\n')}\n\n${text.slice(end)}`;
}

/** docs/traces-and-metrics.md with its table of metrics. */
export function metricsPage(root: string): string {
  const rows = Object.entries(metricTable as Readonly<Record<string, MetricRow>>).map(
    ([name, { kind, unit, attributes, means }]) => [
      `\`${name}\``,
      `${kind}, ${unit}`,
      attributes.map((each) => `\`${each}\``).join(', '),
      means,
    ],
  );
  return pageWith(root, 'docs/traces-and-metrics.md', [['metric', 'kind', 'attributes', 'what it measures'], ...rows]);
}

/** docs/log-lines.md with its table of log lines. */
export function logLinesPage(root: string): string {
  const rows = Object.entries(logTable as Readonly<Record<string, LogRow>>).map(
    ([event, { level, says, cause, remedy }]) => [`\`${event}\``, level, says, cause, remedy],
  );
  return pageWith(root, 'docs/log-lines.md', [['event', 'level', 'sentence', 'cause', 'what to do'], ...rows]);
}

/** docs/deploying.md with its table of alerts. */
export function deployingPage(root: string): string {
  const rows = alerts.map(({ name, when, for: time, urgency, says, see }) => [
    `\`${name}\``,
    `\`${spelled(when, 'scrape').replaceAll('|', '\\|')}\`${time === '0m' ? '' : ` for ${time}`}`,
    urgency,
    `${says} [${see}](when-stuck.md#${anchorOf(see)})`,
  ]);
  return pageWith(root, 'docs/deploying.md', [['alert', 'when', 'urgency', 'what it says'], ...rows]);
}

/** docs/operations.md with its table of exit codes. */
export function operationsPage(root: string): string {
  const rows = Object.values(exitCodeTable).map(({ code, means, supervisor }) => [String(code), means, supervisor]);
  return pageWith(root, 'docs/operations.md', [['exit code', 'meaning', 'what a supervisor does'], ...rows]);
}
