// A run under version 2 of OpenTelemetry's SDK, which test/engines/package.json has:
// sdk-2-worker.ts <store> <collector> <otlp | langfuse> <lives | dies | takes over>
import { registerHooks } from 'node:module';

const installed = new URL('../../engines/package.json', import.meta.url).href;
const [path = '', url = '', product = '', fate = ''] = process.argv.slice(2);

// The peer of `pawl/otel` is the one of this SDK, as where a host has installed both: version 1.9 of the API, not 1.10.
registerHooks({
  resolve: (name, context, next) =>
    next(
      name,
      name.startsWith('@opentelemetry/') || name.startsWith('@langfuse/')
        ? { ...context, parentURL: installed }
        : context,
    ),
});

/** What is used of packages that are not installed with those of this repository. */
interface Installed {
  readonly AsyncLocalStorageContextManager: new () => { enable(): import('@opentelemetry/api').ContextManager };
  readonly BasicTracerProvider: new (options: object) => import('@opentelemetry/sdk-trace').TracerProvider;
  readonly BatchSpanProcessor: new (exporter: object, options: object) => object;
  readonly LangfuseSpanProcessor: new (options: object) => object;
  readonly OTLPTraceExporter: new (options: object) => object;
}
const load = async (name: string): Promise<Installed> => import(name);

const { AsyncLocalStorageContextManager } = await load('@opentelemetry/context-async-hooks');
const { BasicTracerProvider, BatchSpanProcessor } = await load('@opentelemetry/sdk-trace-base');
const { OTLPTraceExporter } = await load('@opentelemetry/exporter-trace-otlp-http');
const { context, trace } = await import('@opentelemetry/api');
const { createExecutor, defineAgent, defineTool } = await import('pawl');
const { openTelemetry, runIds } = await import('pawl/otel');
const { sqliteStore } = await import('pawl/stores/sqlite');
const { callTool, reply, scriptedModel } = await import('pawl/testing');

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces` });
const processor =
  product === 'langfuse'
    ? new (await load('@langfuse/otel')).LangfuseSpanProcessor({ exporter, exportMode: 'immediate' })
    : new BatchSpanProcessor(exporter, { scheduledDelayMillis: 5 });
const provider = new BasicTracerProvider({ idGenerator: runIds(), spanProcessors: [processor] });
trace.setGlobalTracerProvider(provider);

const tools = ['look', 'pay'].map((name) =>
  defineTool({
    ...{ name, description: name, input: { type: 'object' }, effect: 'once' },
    execute: async () => {
      trace.getTracer('own').startSpan(`inside ${name}`).end();
      if (name === 'look' || fate !== 'dies') return 'done';
      await provider.forceFlush();
      process.stdout.write('paying\n');
      return new Promise(() => setInterval(() => {}, 1_000));
    },
  }),
);
const script = [callTool('look', {}, 'look-1'), callTool('pay', {}, 'pay-1'), reply('end')];
const model = scriptedModel(fate === 'takes over' ? script.slice(2) : script);
const agent = defineAgent({ id: 'payer', instructions: 'Pay.', tools, model });
const store = sqliteStore({ path });
const attributes = () => ({ 'session.id': 'thread-1', 'langfuse.user.id': 'ada' });
// The providers are the global ones: their registration is that of the API of this SDK.
const tracing = openTelemetry({ content: true, attributes });
const executor = createExecutor({ store, agents: [agent], tracing, logger: { warn: (text) => console.log(text) } });
const { status } = await executor.run(agent, { runId: 'order-1', prompt: 'Pay it.' });
await executor.shutdown();
await provider.forceFlush();
await provider.shutdown();
await store.close();
process.stdout.write(`${status}\n`);
