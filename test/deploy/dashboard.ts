import { spelled } from './spelling.ts';

/** A query of a panel, with the names of the table, and how its lines are named. */
type Query = readonly [when: string, legend: string];
interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly queries: readonly Query[];
}

const share = (of: string) => `sum(rate(${of}_count{error.type!=""}[5m])) / sum(rate(${of}_count[5m]))`;
const slowest = (of: string) => `histogram_quantile(0.95, sum by (le) (rate(${of}_bucket[5m])))`;

const model = 'gen_ai.client.inference.duration';
const tool = 'gen_ai.execute_tool.duration';
const tokens = 'gen_ai.client.inference.usage';

/** The rows of the dashboard. */
const rows: { readonly [title: string]: readonly Panel[] } = {
  Runs: [
    {
      ...{ title: 'Runs of the store', unit: 'short' },
      queries: [
        ['max(pawl.runs.live)', 'live'],
        ['max(pawl.runs.due)', 'due'],
        ['max(pawl.runs.parked)', 'parked'],
      ],
    },
    { title: 'Age of the oldest due run', unit: 's', queries: [['max(pawl.due.age)', 'age']] },
    {
      ...{ title: 'Ends a minute', unit: 'short' },
      queries: [['sum by (pawl.status) (rate(pawl.runs.ended[5m])) * 60', '{{pawl_status}}']],
    },
    {
      ...{ title: 'Starts and continuations a minute', unit: 'short' },
      queries: [
        ['sum(rate(pawl.runs.started[5m])) * 60', 'started'],
        ['sum by (pawl.how) (rate(pawl.runs.resumed[5m])) * 60', '{{pawl_how}}'],
      ],
    },
  ],
  Waits: [
    {
      ...{ title: 'Waiting, by kind', unit: 'short' },
      queries: [['max by (pawl.kind) (pawl.runs.waiting)', '{{pawl_kind}}']],
    },
    {
      ...{ title: 'Places of workers', unit: 'short' },
      queries: [['sum by (pawl.state) (pawl.worker.places)', '{{pawl_state}}']],
    },
    {
      // A counter by a code is born at 1, which no rate sees.
      ...{ title: 'Parkings since the processes began, by agent and code', unit: 'short' },
      queries: [['sum by (pawl.agent.id, pawl.code) (pawl.parkings)', '{{pawl_agent_id}} {{pawl_code}}']],
    },
  ],
  Store: [
    { title: 'Processes that reach the store', unit: 'short', queries: [['sum(pawl.store.up)', 'up']] },
    { title: 'A save, 95 of 100', unit: 's', queries: [[slowest('pawl.checkpoint.duration'), 'save']] },
    {
      ...{ title: 'Trouble in an hour', unit: 'short' },
      queries: [
        ['sum(increase(pawl.checkpoints.failed[1h]))', 'failed saves'],
        ['sum(increase(pawl.leases.lost[1h]))', 'lost leases'],
        ['sum(increase(pawl.outcomes.unknown[1h]))', 'unknown outcomes'],
      ],
    },
  ],
  Model: [
    { title: 'A request, 95 of 100', unit: 's', queries: [[slowest(model), 'request']] },
    { title: 'Failed requests', unit: 'percentunit', queries: [[share(model), 'failed']] },
    {
      ...{ title: 'Tokens a minute', unit: 'short' },
      queries: [
        [`sum(rate(${tokens}.input_tokens[5m])) * 60`, 'read'],
        [`sum(rate(${tokens}.cache_read.input_tokens[5m])) * 60`, 'read from the cache'],
        [`sum(rate(${tokens}.output_tokens[5m])) * 60`, 'written'],
      ],
    },
  ],
  Tools: [
    {
      ...{ title: 'Calls a minute', unit: 'short' },
      queries: [[`sum by (gen_ai.tool.name) (rate(${tool}_count[5m])) * 60`, '{{gen_ai_tool_name}}']],
    },
    { title: 'A call, 95 of 100', unit: 's', queries: [[slowest(tool), 'call']] },
    { title: 'Failed calls', unit: 'percentunit', queries: [[share(tool), 'failed']] },
  ],
  Spend: [
    {
      ...{ title: 'Dollars in an hour, by agent', unit: 'currencyUSD' },
      queries: [['sum by (pawl.agent.id) (increase(pawl.spend.usd[1h]))', '{{pawl_agent_id}}']],
    },
  ],
};

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const source = { type: 'prometheus', uid: '${datasource}' };
/** The width of a dashboard, and the height of a panel. */
const [WIDTH, HEIGHT] = [24, 8];

/** docs/deploy/pawl.dashboard.json: a dashboard for Grafana. */
export function dashboardFile(): string {
  let y = 0;
  let id = 0;
  const panels = Object.entries(rows).flatMap(([title, list]) => {
    const head = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y: y++, w: WIDTH, h: 1 },
    };
    const w = Math.floor(WIDTH / list.length);
    const shown = list.map((panel, at) => ({ id: ++id, ...panelOf(panel), gridPos: { x: at * w, y, w, h: HEIGHT } }));
    y += HEIGHT;
    return [head, ...shown];
  });
  const variable = { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' };
  const page = { title: 'Pawl', uid: 'pawl', schemaVersion: 39, refresh: '30s', time: { from: 'now-6h', to: 'now' } };
  return `${JSON.stringify({ ...page, templating: { list: [variable] }, panels }, undefined, 1)}\n`;
}

function panelOf({ title, unit, queries }: Panel) {
  const targets = queries.map(([when, legend], at) => ({
    ...{ refId: String.fromCharCode(65 + at), datasource: source },
    ...{ expr: spelled(when, 'both'), legendFormat: legend },
  }));
  return {
    type: 'timeseries',
    title,
    datasource: source,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets,
  };
}
