import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { deployFiles, deployingPage } from '../docs/tables.ts';
import { measuring } from '../otel/measuring.ts';
import { scenes } from './fired-alerts.ts';
import { alerts, anchorOf } from './rules.ts';
import { metrics, spelled } from './spelling.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (name: string) => readFileSync(join(root, 'docs/deploy', name), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}
const rulesIn = (name: string): readonly Rule[] => parse(textOf(name)).groups[0].rules;
const queriesIn = (name: string): readonly string[] =>
  name.endsWith('.yml')
    ? rulesIn(name).map(({ expr }) => expr)
    : JSON.parse(textOf(name)).panels.flatMap(({ targets = [] }) => targets.map(({ expr }: Rule) => expr));

/** The names of metrics in a query of Prometheus. */
const namesIn = (query: string) => query.match(/(?:pawl|gen_ai)_[a-z_]+(?:\(_seconds\)\?[a-z_]*)?/g) ?? [];

/** All names that metrics and attributes of the table have in Prometheus. */
const known = new Set(
  [...metrics].flatMap(([name, { kind, attributes }]) => {
    const parts = kind === 'histogram' ? ['_count', '_sum', '_bucket'] : [''];
    const plain = parts.flatMap((part) => [spelled(`${name}${part}`, 'scrape'), spelled(`${name}${part}`, 'otlp')]);
    const either = parts.flatMap((part) => namesIn(spelled(`${name}${part}`, 'both')));
    return [...plain, ...either, ...attributes.map((each) => spelled(each, 'scrape'))];
  }),
);

describe('the files that watch Pawl', () => {
  test.for(Object.keys(deployFiles))('%s is made of the table of metrics as it is today (operations 6)', (name) => {
    expect(textOf(name), 'run `npm run docs`').toBe(deployFiles[name]?.());
  });

  test('the page has each alert (operations 6)', () => {
    expect(readFileSync(join(root, 'docs/deploying.md'), 'utf8'), 'run `npm run docs`').toBe(deployingPage(root));
    expect(alerts.length).toBeGreaterThan(8);
  });

  test.for(Object.keys(deployFiles))(
    'each query of %s names metrics and attributes of the table alone (operations 34)',
    (name) => {
      const queries = queriesIn(name);
      expect(queries.length).toBeGreaterThan(8);
      for (const query of queries) {
        const names = namesIn(query);
        expect(names.length, query).toBeGreaterThan(0);
        expect(
          names.filter((each) => !known.has(each)),
          query,
        ).toEqual([]);
        for (const [open, close] of ['()', '{}', '[]'])
          expect(query.split(open ?? '').length, query).toBe(query.split(close ?? '').length);
      }
    },
  );

  test('a query with a name that is not in the table is refused, and so is one with a wrong part (operations 34)', () => {
    expect(() => spelled('max(pawl.due.years)', 'scrape')).toThrow('pawl.due.years is no metric');
    expect(() => spelled('sum(pawl.runs.gone_count)', 'otlp')).toThrow('pawl.runs.gone is no metric');
  });

  test('durations end with _seconds by OTLP alone, and units that are annotations have no ending (operations 7)', () => {
    expect(spelled('max(pawl.due.age) > 0.2', 'scrape')).toBe('max(pawl_due_age) > 0.2');
    expect(spelled('max(pawl.due.age)', 'otlp')).toBe('max(pawl_due_age_seconds)');
    expect(spelled('gen_ai.execute_tool.duration_count{error.type!=""}', 'otlp')).toBe(
      'gen_ai_execute_tool_duration_seconds_count{error_type!=""}',
    );
    expect(spelled('gen_ai.execute_tool.duration_count{error.type!=""}', 'both')).toBe(
      '{__name__=~"gen_ai_execute_tool_duration(_seconds)?_count", error_type!=""}',
    );
    for (const way of ['scrape', 'otlp'] as const) {
      expect(spelled('pawl.runs.ended + pawl.spend.usd', way)).toBe('pawl_runs_ended_total + pawl_spend_usd_total');
      expect(spelled('pawl.store.up', way)).toBe('pawl_store_up');
    }
    for (const [name, { unit }] of metrics) expect(unit, name).toMatch(/^(s|\{[A-Za-z]+\})$/);
  });

  test('gauges of the store, which each process shows alike, are never added up (operations 9)', () => {
    const ofStore = ['pawl.runs.live', 'pawl.runs.due', 'pawl.due.age', 'pawl.runs.waiting', 'pawl.runs.parked'];
    for (const query of Object.keys(deployFiles).flatMap(queriesIn))
      for (const name of ofStore) {
        const at = query.indexOf(spelled(name, 'scrape'));
        if (at >= 0)
          expect(query.slice(0, at), query).toMatch(/max( by \([a-z_]+\))? ?\((\{__name__=~")?$|(max|and) .*max\($/);
      }
  });

  test.for(['pawl.rules.yml', 'pawl.otlp.rules.yml'])(
    'each alert of %s leads, by an address that a pager opens, to the one heading of the runbook that names it (operations 6)',
    (name) => {
      const page = readFileSync(join(root, 'docs/when-stuck.md'), 'utf8');
      const [, ...entries] = page.split(/^## /m);
      for (const { alert, annotations } of rulesIn(name)) {
        const naming = entries.filter((entry) => entry.includes(`\`${alert}\``));
        const headings = naming.map((entry) => anchorOf(entry.split('\n')[0] ?? ''));
        const { origin, pathname, hash } = new URL(annotations.runbook_url);
        expect([headings, pathname], alert).toEqual([[hash.slice(1)], '/when-stuck.html']);
        expect(origin).toBe(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).homepage);
      }
    },
  );

  test('each counter of an alert by agent is 0 for the agents of an executor, before any run (operations 8)', async () => {
    const { tracing, read } = measuring();
    const agents = [defineAgent({ id: 'clerk', instructions: 'Answer.' })];
    const executor = createExecutor({ agents, store: memoryStore(), tracing });
    const measured = await read();
    const counters = [...metrics].filter(
      ([, { kind, attributes, alerts: rows }]) => kind === 'counter' && rows && attributes.includes('pawl.agent.id'),
    );
    expect(counters.length).toBeGreaterThan(2);
    for (const [name] of counters) expect(measured.of(name, { 'pawl.agent.id': 'clerk' }), name).toBe(0);
    await executor.shutdown();
  });
});

/** Whether promtool, of the Debian package `prometheus`, is on this machine. */
function hasPromtool(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!hasPromtool()).for(['pawl.rules.yml', 'pawl.otlp.rules.yml'])(
  'promtool, which is on this machine, reads %s (operations 34)',
  (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-rules-'));
    writeFileSync(join(folder, name), textOf(name));
    expect(execFileSync('promtool', ['check', 'rules', join(folder, name)], { encoding: 'utf8' })).toContain('SUCCESS');
    rmSync(folder, { recursive: true });
  },
);

test.skipIf(!hasPromtool())(
  'Prometheus reads the configuration of the page: it has the rules, and scrapes the port of the exporter (operations 34)',
  () => {
    const page = readFileSync(join(root, 'docs/deploying.md'), 'utf8');
    const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const [, port] = /new PrometheusExporter\(\{ port: (\d+) \}\)/.exec(page) ?? [];
    const { rule_files, scrape_configs } = parse(text);
    expect(rule_files).toEqual(['pawl.rules.yml']);
    for (const target of scrape_configs[0].static_configs[0].targets) expect(target).toMatch(new RegExp(`:${port}$`));
    const folder = mkdtempSync(join(tmpdir(), 'pawl-rules-'));
    for (const name of rule_files) writeFileSync(join(folder, name), textOf(name));
    writeFileSync(join(folder, 'prometheus.yml'), text);
    const said = spawnSync('promtool', ['check', 'config', join(folder, 'prometheus.yml')], { encoding: 'utf8' });
    expect(said.status, said.stdout + said.stderr).toBe(0);
    rmSync(folder, { recursive: true });
  },
);

test('each alert has a scene in which it fires, and one in which it does not (operations 34)', () => {
  expect(Object.keys(scenes).sort()).toEqual(alerts.map(({ name }) => name).sort());
});

/** What `promtool test rules` reads: each alert in its two scenes. */
function ruleTests(rules: string, way: 'scrape' | 'otlp'): string {
  const summaries = new Map(rulesIn(rules).map(({ alert, annotations }) => [alert, annotations]));
  const tests = alerts.flatMap(({ name, urgency }) =>
    (['fires', 'calm'] as const).flatMap((kind) => {
      const scene = scenes[name]?.[kind];
      if (!scene) return [];
      const input_series = Object.entries(scene.series).map(([series, values]) => ({
        series: spelled(series, way),
        values,
      }));
      const fired = { exp_labels: { severity: urgency, ...scene.labels }, exp_annotations: summaries.get(name) };
      const exp_alerts = kind === 'fires' ? [fired] : [];
      return {
        interval: '1m',
        name,
        input_series,
        alert_rule_test: [{ eval_time: scene.at, alertname: name, exp_alerts }],
      };
    }),
  );
  return stringify({ rule_files: [rules], evaluation_interval: '1m', tests }, { lineWidth: 0 });
}

test.skipIf(!hasPromtool()).for([
  ['pawl.rules.yml', 'scrape'],
  ['pawl.otlp.rules.yml', 'otlp'],
] as const)(
  'each alert of %s fires in its scene, and not in the neighbour, as promtool evaluates them (operations 34)',
  ([name, way]) => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-rules-'));
    writeFileSync(join(folder, name), textOf(name));
    writeFileSync(join(folder, 'test.yml'), ruleTests(name, way));
    const said = spawnSync('promtool', ['test', 'rules', 'test.yml'], { cwd: folder, encoding: 'utf8' });
    expect(said.status, said.stdout + said.stderr).toBe(0);
    rmSync(folder, { recursive: true });
  },
);
