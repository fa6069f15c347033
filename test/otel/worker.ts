// One process with a real exporter, to be killed: node worker.ts <store> <collector> <dies | lives>
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { openTelemetry, runIds } from 'pawl/otel';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';

const [path = '', url = '', fate] = process.argv.slice(2);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces` });
const spanProcessors = [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 5 })];
const tracerProvider = new TracerProvider({ idGenerator: runIds(), spanProcessors });

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  effect: 'idempotent',
  execute: async () => 'seen',
});
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  execute: async () => {
    if (fate !== 'dies') return 'paid';
    await tracerProvider.forceFlush();
    process.stdout.write('paying\n');
    return new Promise(() => setInterval(() => {}, 1_000));
  },
});
const script = [callTool('look', {}, 'look-1'), callTool('pay', {}, 'pay-1'), reply('end')];
const agent = defineAgent({
  ...{ id: 'payer', instructions: 'Pay.', tools: [look, pay] },
  // The second process asks for its third step only.
  model: scriptedModel(fate === 'dies' ? script : script.slice(2)),
});
const store = sqliteStore({ path });
const executor = createExecutor({ store, agents: [agent], tracing: openTelemetry({ tracerProvider }) });
const result = await executor.run(agent, { runId: 'order-1', prompt: 'Pay it.' });
await executor.shutdown();
await tracerProvider.shutdown();
await store.close();
process.stdout.write(`${result.status}\n`);
