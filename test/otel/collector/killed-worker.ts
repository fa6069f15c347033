// One process with a real exporter, to be killed: KILLED_JOB has its job. It says where it would die, and stands still there until it is killed.
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type CheckpointStore, createExecutor, createPalette, defineAgent, defineTool } from 'pawl';
import { openTelemetry, runIds } from 'pawl/otel';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, reply, scriptedModel } from 'pawl/testing';
import pg from 'pg';
import { wrapStore } from '../../../src/store/read-only.ts';

export interface WorkerJob {
  readonly store: { readonly path: string } | { readonly url: string; readonly schema: string };
  readonly collector: string;
  readonly runId: string;
  readonly leaseMs?: number;
  /** In which call of `pay` it dies, or at which of its boundaries: after each write, and before and after each request and tool. */
  readonly dies?: 'in pay' | number | undefined;
}

const {
  store: place,
  collector,
  runId,
  leaseMs = 30_000,
  dies,
} = JSON.parse(process.env.KILLED_JOB ?? '') as WorkerJob;
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new OTLPTraceExporter({ url: `${collector}/v1/traces`, headers: { 'x-host': hostname() } });
const tracerProvider = new TracerProvider({
  idGenerator: runIds(),
  spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 5 })],
});

let passed = 0;
let isStill = false;

/** What has ended is exported; then nothing more happens here, but for the renewal of the lease. */
async function stand(): Promise<never> {
  if (!isStill) {
    isStill = true;
    await tracerProvider.forceFlush();
    process.stdout.write('still\n');
  }
  return new Promise(() => setInterval(() => {}, 1_000));
}

async function pass(): Promise<void> {
  passed += 1;
  if (isStill || passed === dies) await stand();
}

const bounded =
  <A extends readonly unknown[], R>(call: (...args: A) => R) =>
  async (...args: A): Promise<Awaited<R>> => {
    await pass();
    const answer = await call(...args);
    await pass();
    return answer;
  };

const look = defineTool({
  ...{ name: 'look', description: 'Looks.', input: { type: 'object' }, effect: 'idempotent' },
  execute: bounded(async () => 'seen'),
});
const pay = defineTool({
  ...{ name: 'pay', description: 'Pays.', input: { type: 'object' }, effect: 'once' },
  execute: bounded(async () => (dies === 'in pay' ? stand() : 'paid')),
});
const turns = [
  () => callTool('look', {}, 'look-1'),
  () =>
    callTools([
      { name: 'pay', input: {}, callId: 'pay-1' },
      { name: 'agent__helper', input: { prompt: 'help' }, callId: 'ask-1' },
    ]),
];
const model = scriptedModel(
  Array.from(
    { length: 100 },
    () =>
      ({ system, messages }: { system: string; messages: readonly { role: string }[] }) => {
        const turn = messages.filter(({ role }) => role === 'assistant').length;
        return turns[system === 'Pay.' ? turn : turns.length]?.() ?? reply('end');
      },
  ),
);
const asked = { ...model, doStream: bounded(model.doStream.bind(model)) };
const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: asked });
const agent = defineAgent({
  id: 'payer',
  instructions: 'Pay.',
  tools: [look, pay],
  subAgents: ['helper'],
  model: asked,
});

const pool = 'url' in place ? new pg.Pool({ connectionString: place.url, max: 4 }) : undefined;
const inner: CheckpointStore & { close(): unknown } =
  pool && 'schema' in place
    ? postgresStore({ pool, schema: place.schema })
    : sqliteStore({ path: 'path' in place ? place.path : '' });
/** What changes a run in the store. */
const writing: ReadonlySet<string> = new Set([
  'claim',
  'save',
  'append',
  'outcomes.keep',
  'history.end',
  'delete',
  'release',
]);
const store = wrapStore(inner, (name, call) => async (...args) => {
  // A lease that is not renewed would be another death.
  if (isStill && name !== 'renew') return stand();
  const answer = await call(...args);
  // A claim of a run that another process has writes nothing.
  if (writing.has(name) && answer !== null) await pass();
  return answer;
});
const executor = createExecutor({
  ...{ store, agents: [agent, helper], ports: { palette: createPalette({ agents: [helper] }) } },
  ...{ tracing: openTelemetry({ tracerProvider }), logger: { warn: () => {} } },
  defaults: { leaseMs, maxAttempts: 100 },
});
for (let isElsewhere = false; ; ) {
  const { status, error } = await executor.run(agent, { runId, prompt: 'Pay it.' });
  if (error?.code !== 'RUN_OWNED_ELSEWHERE') {
    process.stdout.write(`${status}\n`);
    break;
  }
  if (!isElsewhere) process.stdout.write('elsewhere\n');
  isElsewhere = true;
  await sleep(20);
}
await executor.shutdown();
await tracerProvider.shutdown();
await inner.close();
await pool?.end();
