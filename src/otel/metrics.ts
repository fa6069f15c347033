import {
  type Attributes,
  type BatchObservableResult,
  type Counter,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type Observable,
} from '@opentelemetry/api';
import type { LogFields, ObservedRun, RunEvent, TracedCall, WatchedExecutor } from '../index.ts';
import { durationBounds, type MetricName, metricTable, saveBounds } from './metric-table.ts';
import { genAi, own } from './names.ts';
import { BoundedValues, codeOf, tokensOf } from './replies.ts';
import { SCOPE } from './traces.ts';

/** The ends of runs. */
const statuses = ['ok', 'error', 'timeout', 'cancelled', 'killed'] as const;
const ends: ReadonlySet<string> = new Set(statuses);

/** The meter of the API while no provider is registered. */
const idle = createNoopMeter();

/** What is measured of a run at work here. */
interface Measured {
  /** When this process began to work on it, wall clock, ms. */
  readonly from: number;
  readonly agent: Attributes;
  /** The cost that was counted already, US dollars. */
  usd: number;
}

/** Measures the runs of one process. */
export class Metrics {
  readonly #given: MeterProvider | undefined;
  readonly #values = new BoundedValues();
  readonly #runs = new WeakMap<ObservedRun, Measured>();
  /** Agents whose counters have been exported as 0: an alert misses a counter that is born at 1. */
  #known = new Set<string>();
  #provider: MeterProvider | undefined;
  #watched: WatchedExecutor | undefined;
  /** The meter that has the gauges. */
  #showing: Meter | undefined;
  #meter: Meter = idle;
  #instruments = new Map<string, Counter | Histogram>();

  /** @param provider default: the one that is registered globally */
  constructor(provider: MeterProvider | undefined) {
    this.#given = provider;
  }

  /** Whether a provider is there that measures. */
  get isMeasuring(): boolean {
    const provider = this.#given ?? metrics.getMeterProvider();
    if (provider !== this.#provider) {
      this.#provider = provider;
      this.#meter = provider.getMeter(SCOPE);
      // An instrument that was made before a provider was registered never measures: they are made again for each provider.
      this.#instruments = new Map();
      this.#known = new Set();
    }
    if (this.#watched && this.#meter !== idle && this.#showing !== this.#meter) {
      this.#showing = this.#meter;
      addGauges(this.#meter, this.#watched);
      for (const name of ['pawl.outcomes.undelivered', 'pawl.schedules.missed'] as const) this.#count(name, 0, {});
      for (const id of this.#watched.agentIds) this.#showZeros(id, { [own.agentId]: this.#values.of(own.agentId, id) });
    }
    return this.#meter !== idle;
  }

  /** Shows the store and the places of an executor, the first one that there is: the processes of a fleet show one store. */
  watch(executor: WatchedExecutor): void {
    this.#watched ??= executor;
    executor.onWarning(this.#onWarning);
    this.look();
  }

  /** Looks whether a provider is there now. */
  look(): void {
    void this.isMeasuring;
  }

  /** Measures one request of a model. */
  async askState(call: Extract<TracedCall, { kind: 'model' }>, reply: Promise<unknown>): Promise<void> {
    const from = performance.now();
    const about = {
      [genAi.provider]: this.#values.of(genAi.provider, call.provider),
      [genAi.requestModel]: this.#values.of(genAi.requestModel, call.modelId),
      ...(call.purpose ? { [own.purpose]: call.purpose } : {}),
    };
    const seconds = () => (performance.now() - from) / 1_000;
    try {
      const answer = await reply;
      this.#measure('gen_ai.client.inference.duration', seconds(), about);
      for (const [name, tokens] of tokensOf(answer)) {
        const counter = name.replace('gen_ai.usage.', 'gen_ai.client.inference.usage.');
        this.#count(counter as MetricName<'counter'>, tokens, about);
      }
    } catch (error) {
      const failed = { ...about, [genAi.errorType]: this.#values.of(genAi.errorType, codeOf(error)) };
      this.#measure('gen_ai.client.inference.duration', seconds(), failed);
    }
  }

  event(event: RunEvent, run: ObservedRun): void {
    if (!this.isMeasuring) return;
    const { at } = event;
    switch (event.type) {
      case 'run.started':
      case 'run.resumed':
        this.#onBegun(event, run);
        break;
      case 'tool.done':
        if (!event.isLate) this.#measure('gen_ai.execute_tool.duration', event.ms / 1_000, this.#ofTool(event));
        break;
      case 'step.done':
        this.#spent(event.spend?.usd, run);
        break;
      case 'model.retry':
        this.#count('pawl.model.retries', 1, { ...this.#agent(run), ...this.#code(event.error.code) });
        break;
      case 'call.unknown':
        this.#count('pawl.outcomes.unknown', 1, this.#agent(run));
        break;
      case 'checkpoint.saved':
        this.#measure('pawl.checkpoint.duration', event.ms / 1_000, {});
        break;
      case 'checkpoint.failed':
        this.#count('pawl.checkpoints.failed', 1, this.#code(event.error.code));
        break;
      case 'lease.lost':
        this.#count('pawl.leases.lost', 1, this.#agent(run));
        break;
      case 'run.parked':
        this.#count('pawl.parkings', 1, { ...this.#agent(run), ...this.#code(event.code) });
        if (event.code === 'OUTCOME_UNKNOWN') this.#count('pawl.outcomes.unknown', unknownCalls(run), this.#agent(run));
        this.#onWork(run, at, 'parked');
        break;
      case 'run.ended':
        if (ends.has(event.status))
          this.#count('pawl.runs.ended', 1, { ...this.#agent(run), [own.status]: event.status });
        this.#onWork(run, at, event.status);
        break;
    }
  }

  readonly #onWarning = ({ event, code, ticks }: LogFields): void => {
    if (!this.isMeasuring) return;
    this.#count('pawl.warnings', 1, { 'pawl.event': String(event) });
    if (event === 'setup.failed') this.#count('pawl.setups.failed', 1, this.#code(String(code)));
    if (event === 'schedule.missed') this.#count('pawl.schedules.missed', Number(ticks), {});
    if (event === 'outcome.delivery.failed') this.#count('pawl.outcomes.undelivered', 1, {});
  };

  #onBegun(event: Extract<RunEvent, { type: 'run.started' | 'run.resumed' }>, run: ObservedRun): void {
    const { type, at } = event;
    const earlier = type === 'run.resumed' ? event.spend : undefined;
    const agent = { [own.agentId]: this.#values.of(own.agentId, run.info.subjectId) };
    // What earlier processes counted is not counted again.
    this.#runs.set(run, { from: at, agent, usd: earlier?.usd ?? 0 });
    this.#showZeros(run.info.subjectId, agent);
    if (type === 'run.started') this.#count('pawl.runs.started', 1, agent);
    else this.#count('pawl.runs.resumed', 1, { ...agent, 'pawl.how': run.previous?.how ?? 'left' });
  }

  #showZeros(agentId: string, agent: Attributes): void {
    if (this.#known.has(agentId) || this.#known.size > 1_000) return;
    this.#known.add(agentId);
    for (const name of ['pawl.runs.started', 'pawl.leases.lost', 'pawl.outcomes.unknown', 'pawl.spend.usd'] as const)
      this.#count(name, 0, agent);
    for (const status of statuses) this.#count('pawl.runs.ended', 0, { ...agent, [own.status]: status });
    for (const how of ['lost', 'left', 'waited', 'slice'])
      this.#count('pawl.runs.resumed', 0, { ...agent, 'pawl.how': how });
  }

  #onWork(run: ObservedRun, at: number, status: string): void {
    const measured = this.#runs.get(run);
    if (!measured) return;
    this.#runs.delete(run);
    const about = { ...measured.agent, [own.status]: status };
    this.#measure('gen_ai.invoke_agent.duration', Math.max(0, at - measured.from) / 1_000, about);
  }

  /** Counts the cost of a step: events have the sum of the run. */
  #spent(usd: number | undefined, run: ObservedRun): void {
    const measured = this.#runs.get(run);
    if (usd === undefined || !measured) return;
    const more = usd - measured.usd;
    measured.usd = usd;
    if (more > 0) this.#count('pawl.spend.usd', more, measured.agent);
  }

  #agent(run: ObservedRun): Attributes {
    return this.#runs.get(run)?.agent ?? { [own.agentId]: this.#values.of(own.agentId, run.info.subjectId) };
  }

  #code(code: string): Attributes {
    return { [own.code]: this.#values.of(own.code, code) };
  }

  #ofTool({ name, output }: Extract<RunEvent, { type: 'tool.done' }>): Attributes {
    const failed = output.type.startsWith('error') ? { [genAi.errorType]: 'tool_error' } : {};
    return { [genAi.toolName]: this.#values.of(genAi.toolName, name), ...failed };
  }

  #count(name: MetricName<'counter'>, value: number, attributes: Attributes): void {
    const { unit, means: description } = metricTable[name];
    const make = (meter: Meter) => meter.createCounter(name, { unit, description });
    (this.#instrument(name, make) as Counter).add(value, attributes);
  }

  #measure(name: MetricName<'histogram'>, seconds: number, attributes: Attributes): void {
    const { unit, means: description } = metricTable[name];
    const explicitBucketBoundaries = [...(name === 'pawl.checkpoint.duration' ? saveBounds : durationBounds)];
    const advice = { explicitBucketBoundaries };
    const make = (meter: Meter) => meter.createHistogram(name, { unit, description, advice });
    (this.#instrument(name, make) as Histogram).record(seconds, attributes);
  }

  #instrument(name: string, make: (meter: Meter) => Counter | Histogram): Counter | Histogram {
    const instrument = this.#instruments.get(name) ?? make(this.#meter);
    this.#instruments.set(name, instrument);
    return instrument;
  }
}

/** How many `once` calls a process died in, of a run that is parked for them: no event says it of each. Each is counted once. */
function unknownCalls({ attempt, previous }: ObservedRun): number {
  if (attempt !== undefined || !previous || previous.told === 'unknown') return 0;
  return previous.calls.filter(({ effect }) => effect === 'once').length;
}

type GaugeName = MetricName<'gauge'>;

/** Adds the gauges of an executor to a meter: they are read when their exporter asks, and never between. */
function addGauges(meter: Meter, executor: WatchedExecutor): void {
  const gauges = new Map<GaugeName, Observable>();
  for (const [name, { kind, unit, means }] of Object.entries(metricTable))
    if (kind === 'gauge')
      gauges.set(name as GaugeName, meter.createObservableGauge(name, { unit, description: means }));
  // A failure gives no value, and no error to the SDK.
  const observe = (result: BatchObservableResult) => read(executor, gauges, result).catch(() => {});
  meter.addBatchObservableCallback(observe, [...gauges.values()]);
}

async function read(
  executor: WatchedExecutor,
  gauges: ReadonlyMap<GaugeName, Observable>,
  result: BatchObservableResult,
): Promise<void> {
  const set = (name: GaugeName, value: number, attributes = {}) => {
    const gauge = gauges.get(name);
    if (gauge) result.observe(gauge, value, attributes);
  };
  const places = executor.places();
  for (const state of ['free', 'busy'] as const)
    if (places) set('pawl.worker.places', places[state], { 'pawl.state': state });
  const store = await executor.store();
  if (!store) return;
  set('pawl.store.up', store.isUp ? 1 : 0);
  if (!store.stats) return;
  const { live, due, dueAgeMs, waiting, parked } = store.stats;
  set('pawl.runs.live', live);
  set('pawl.runs.due', due);
  set('pawl.due.age', dueAgeMs / 1_000);
  set('pawl.runs.parked', parked);
  for (const kind of KINDS) set('pawl.runs.waiting', waiting[kind] ?? 0, { 'pawl.kind': kind });
}

/** What runs wait for. A kind without runs is 0: an alert would miss one that is born at 1. */
const KINDS = ['approval', 'question', 'event', 'timer', 'child', 'retry', 'limit', 'other'];
