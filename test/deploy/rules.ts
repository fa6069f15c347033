import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import type { AlertRow } from '../../src/otel/metric-table.ts';
import { metrics, spelled, type Way } from './spelling.ts';

/** All alerts of the table. */
export const alerts: readonly AlertRow[] = [...metrics.values()].flatMap((row) => row.alerts ?? []);

/** The place of a heading, as links name it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');

/** Where the site of the docs is. A fork has its own. */
const { homepage } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** docs/deploy/pawl.rules.yml, or pawl.otlp.rules.yml: the rules of all alerts. */
export function rulesFile(way: Exclude<Way, 'both'>): string {
  const rules = alerts.map(({ name, when, for: time, urgency, says, see }) => ({
    alert: name,
    expr: spelled(when, way),
    for: time,
    labels: { severity: urgency },
    annotations: { summary: says, runbook_url: `${homepage}/when-stuck.html#${anchorOf(see)}` },
  }));
  const how = way === 'scrape' ? 'scraped from the exporter of the SDK' : 'sent by OTLP';
  return `# Made by \`npm run docs\`: alerts of Pawl, for metrics that are ${how}.\n${stringify({ groups: [{ name: 'pawl', rules }] }, { lineWidth: 0 })}`;
}
