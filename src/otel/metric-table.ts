// All metrics, as a table: the code measures by its rows, and the docs page is made of it.

/** What is known of a metric besides its name. */
export interface MetricRow {
  readonly kind: 'histogram' | 'counter' | 'gauge';
  readonly unit: string;
  /** The names of its attributes. None is an id of a run, a caller or a wait. */
  readonly attributes: readonly string[];
  /** One sentence: what it measures. */
  readonly means: string;
  readonly alerts?: readonly AlertRow[];
}

/** When a person should look, and how soon. */
export interface AlertRow {
  readonly name: string;
  /** PromQL with the names of this table: the rules spell them as Prometheus has them. */
  readonly when: string;
  /** For how long. */
  readonly for: string;
  readonly urgency: 'page' | 'ticket';
  /** What has happened. */
  readonly says: string;
  /** The heading of docs/when-stuck.md that says what to do. */
  readonly see: string;
}

/** `pawl.purpose`: who asks, where it is not the agent: `critic` or `compactor`. */
const model = ['gen_ai.provider.name', 'gen_ai.request.model', 'pawl.purpose'] as const;
const agent = ['pawl.agent.id'] as const;

/** The metrics of `pawl/otel`. The names of `gen_ai` are those of semantic-conventions-genai v0.1.0. */
export const metricTable = {
  'gen_ai.client.inference.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: [...model, 'error.type'],
    means:
      'How long one request of a model takes. `error.type`: it failed. `pawl.purpose`: the critic or the compactor asks.',
    alerts: [
      {
        name: 'PawlModelErrors',
        when: `sum by (gen_ai.request.model) (rate(gen_ai.client.inference.duration_count{error.type!=""}[10m])) / sum by (gen_ai.request.model) (rate(gen_ai.client.inference.duration_count[10m])) > 0.2`,
        ...{ for: '10m', urgency: 'ticket', says: 'More than a fifth of the requests of a model fail.' },
        see: 'The model is away',
      },
    ],
  },
  'gen_ai.client.inference.usage.input_tokens': tokens('Tokens that models read, as their providers report them.'),
  'gen_ai.client.inference.usage.output_tokens': tokens('Tokens that models wrote.'),
  'gen_ai.client.inference.usage.cache_read.input_tokens': tokens('Tokens that providers read from their caches.'),
  'gen_ai.client.inference.usage.cache_write.input_tokens': tokens('Tokens that providers wrote to their caches.'),
  'gen_ai.client.inference.usage.reasoning.output_tokens': tokens('Tokens of the thoughts of models.'),
  'gen_ai.execute_tool.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: ['gen_ai.tool.name', 'error.type'],
    means: 'How long one call of a tool takes. `error.type`: the model got an error.',
  },
  'gen_ai.invoke_agent.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: [...agent, 'pawl.status'],
    means: 'How long one process works on a run, from its start to its end, its wait or its leaving.',
  },
  'pawl.checkpoint.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: [],
    means: 'How long a save takes, from its request until it is stored.',
  },
  'pawl.runs.started': counter('{run}', [...agent], 'Runs that began.'),
  'pawl.runs.resumed': counter(
    '{run}',
    [...agent, 'pawl.how'],
    'Runs that continued: after a crash (`lost`), a wait, a slice, or because a process left them.',
  ),
  'pawl.runs.ended': counter('{run}', [...agent, 'pawl.status'], 'Runs that ended, by their status.'),
  'pawl.outcomes.unknown': {
    ...counter('{call}', [...agent], 'Calls of `once` tools that may or may not have taken effect.'),
    alerts: [
      {
        name: 'PawlUnknownOutcome',
        when: moreThan('pawl.outcomes.unknown', 0),
        ...{ for: '0m', urgency: 'ticket', says: 'A call with an effect may or may not have taken place.' },
        see: 'The outcome of a call is unknown',
      },
    ],
  },
  'pawl.leases.lost': {
    ...counter('{run}', [...agent], 'Runs that another process took from this one.'),
    alerts: [
      {
        name: 'PawlLeasesLost',
        when: moreThan('pawl.leases.lost', 3),
        ...{ for: '0m', urgency: 'ticket', says: 'Processes lose their runs: frozen hosts, or a blocked event loop.' },
        see: 'A host was frozen',
      },
    ],
  },
  'pawl.model.retries': counter(
    '{request}',
    [...agent, 'pawl.code'],
    'Requests of models that were repeated, by the error before.',
  ),
  'pawl.checkpoints.failed': {
    ...counter('{save}', ['pawl.code'], 'Saves that failed. They are tried again.'),
    alerts: [
      {
        name: 'PawlSavesFail',
        when: 'sum(rate(pawl.checkpoints.failed[5m])) > 0',
        ...{ for: '5m', urgency: 'page', says: 'Runs cannot be saved: the store is away, or full.' },
        see: 'The disk was full, or the store was away',
      },
    ],
  },
  'pawl.parkings': counter(
    '{run}',
    [...agent, 'pawl.code'],
    'Runs that were parked until a person acts, by their code.',
  ),
  'pawl.setups.failed': {
    ...counter('{failure}', ['pawl.code'], 'Runs that a process gave back, because its setup cannot continue them.'),
    alerts: [
      {
        name: 'PawlSetup',
        when: moreThan('pawl.setups.failed', 0),
        ...{ for: '0m', urgency: 'page', says: 'A process lacks a model, a key or a tool: a bad deploy.' },
        see: 'A setup is missing',
      },
    ],
  },
  'pawl.outcomes.undelivered': {
    ...counter('{delivery}', [], 'Deliveries of ends that `onOutcome` did not accept. They are tried again.'),
    alerts: [
      {
        name: 'PawlUndelivered',
        when: 'sum(rate(pawl.outcomes.undelivered[5m])) > 0',
        ...{ for: '10m', urgency: 'ticket', says: 'Your program does not accept the ends of runs.' },
        see: 'Ends are not delivered',
      },
    ],
  },
  'pawl.schedules.missed': {
    ...counter('{tick}', [], 'Times of schedules at which no process was there to begin a run.'),
    alerts: [
      {
        name: 'PawlScheduleMissed',
        when: moreThan('pawl.schedules.missed', 0),
        ...{ for: '0m', urgency: 'ticket', says: 'No process was there when a schedule was due.' },
        see: 'A schedule did not run',
      },
    ],
  },
  'pawl.warnings': counter('{line}', ['pawl.event'], 'Log lines of level `warn` or `error`, by their event.'),
  'pawl.spend.usd': {
    ...counter('{USD}', [...agent], 'What the steps of runs cost, as the budget counts it.'),
    alerts: [
      {
        name: 'PawlSpend',
        when: 'sum(increase(pawl.spend.usd[1h])) > 100',
        ...{
          for: '0m',
          urgency: 'ticket',
          says: 'Runs cost more than 100 dollars in an hour. Put your own bound here.',
        },
        see: 'Runs cost too much',
      },
    ],
  },
  'pawl.runs.live': gauge('{run}', [], 'Runs of the store that a process works on.'),
  'pawl.runs.due': gauge('{run}', [], 'Runs of the store that are due, and that no process works on.'),
  'pawl.due.age': {
    ...gauge('s', [], 'For how long the oldest due run of the store has been due.'),
    alerts: [
      {
        name: 'PawlNoWorker',
        when: 'max(pawl.due.age) > 120 and max(pawl.runs.live) == 0',
        ...{ for: '3m', urgency: 'page', says: 'Runs are due, and no process works on any.' },
        see: 'Runs pile up',
      },
      {
        name: 'PawlDueRunsPileUp',
        when: 'max(pawl.due.age) > 300',
        ...{
          for: '5m',
          urgency: 'ticket',
          says: 'A run has been due for five minutes: more workers, or a missing agent.',
        },
        see: 'Runs pile up',
      },
    ],
  },
  'pawl.runs.waiting': {
    ...gauge('{run}', ['pawl.kind'], 'Runs of the store that wait, by the kind of their first wait.'),
    alerts: [
      {
        name: 'PawlWaitsForPeople',
        when: 'max by (pawl.kind) (pawl.runs.waiting{pawl.kind=~"approval|question"}) > 100',
        ...{ for: '1h', urgency: 'ticket', says: 'More than 100 runs wait for a person. Put your own bound here.' },
        see: 'A person does not answer',
      },
    ],
  },
  'pawl.runs.parked': {
    ...gauge('{run}', [], 'Runs of the store that are parked: only a person moves them.'),
    alerts: [
      {
        name: 'PawlParked',
        when: 'max(pawl.runs.parked) > 0',
        ...{ for: '1m', urgency: 'ticket', says: 'A run is parked, and stays so until a person acts.' },
        see: 'A run is parked',
      },
    ],
  },
  'pawl.store.up': {
    // A unit that is an annotation gets no suffix.
    ...gauge('{store}', [], 'Whether the store answers this process: 1 or 0. A full one answers: its saves fail.'),
    alerts: [
      {
        // The gauges of a process die with it: without any process no other rule has a value to read.
        name: 'PawlNoProcess',
        when: 'absent(pawl.store.up)',
        ...{ for: '5m', urgency: 'page', says: 'No process reports: all are dead, or their metrics do not arrive.' },
        see: 'No process reports',
      },
      {
        name: 'PawlStoreAway',
        when: 'min(pawl.store.up) == 0',
        ...{ for: '2m', urgency: 'page', says: 'A process does not reach its store.' },
        see: 'The disk was full, or the store was away',
      },
    ],
  },
  'pawl.worker.places': gauge('{run}', ['pawl.state'], 'Places of the workers of this process: `free` or `busy`.'),
} satisfies { readonly [name: string]: MetricRow };

function tokens(means: string) {
  return counter('{token}', [...model], means);
}

function counter(unit: string, attributes: readonly string[], means: string) {
  return { kind: 'counter', unit, attributes, means } as const;
}

/** A counter that is born above 0, in a process that has just begun, has not increased as Prometheus counts. */
function moreThan(name: string, bound: number): string {
  return `sum(increase(${name}[15m])) > ${bound} or sum(${name} unless ${name} offset 15m) > ${bound}`;
}

function gauge(unit: string, attributes: readonly string[], means: string) {
  return { kind: 'gauge', unit, attributes, means } as const;
}

type Table = typeof metricTable;

/** The names of the metrics of one kind. */
export type MetricName<Kind extends MetricRow['kind']> = {
  [Name in keyof Table]: Table[Name]['kind'] extends Kind ? Name : never;
}[keyof Table];

/** The bounds of histograms in seconds: those that SDKs choose by themselves are for ms. */
export const durationBounds: readonly number[] = Array.from({ length: 14 }, (_, i) => 0.01 * 2 ** i);

/** The bounds for saves, in seconds. */
export const saveBounds: readonly number[] = Array.from({ length: 14 }, (_, i) => 0.0005 * 2 ** i);
