// Prints how many objects a live run keeps while its model is asked: without tracing, without a provider, and with one that records.
import { queryObjects } from 'node:v8';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { createExecutor, defineAgent, type Model, type Tracing } from 'pawl';
import { openTelemetry, runIds } from 'pawl/otel';
import { hangingAfter } from '../bench/workload.ts';
import { until } from '../fixtures/host.ts';

const RUNS = 100;
const agent = defineAgent({ id: 'desk', instructions: 'Work.' });

const none = await objectsOfRun(undefined);
const idle = await objectsOfRun(openTelemetry());
const tracerProvider = new TracerProvider({ idGenerator: runIds() });
const recording = await objectsOfRun(openTelemetry({ tracerProvider, metrics: false }));
process.stdout.write(JSON.stringify({ none, idle, recording }));
process.exit();

/** Counts the objects that each of a hundred runs keeps while its model is asked. */
async function objectsOfRun(tracing: Tracing | undefined): Promise<number> {
  let asked = 0;
  const hanging = hangingAfter(0);
  const doStream: Model['doStream'] = (options) => {
    asked += 1;
    return hanging.doStream(options);
  };
  const executor = createExecutor({
    models: () => ({ ...hanging, doStream }),
    agents: [agent],
    ...(tracing && { tracing }),
  });
  const countAfter = async (runs: number) => {
    for (let i = 0; i < runs; i++) executor.start(agent, { prompt: 'Work.' });
    const all = asked + runs;
    await until(() => asked === all);
    return queryObjects(Object, { format: 'count' });
  };
  // The first runs make what all share.
  const before = await countAfter(10);
  const after = await countAfter(RUNS);
  await executor.shutdown({ drainMs: 0 });
  return Math.round((after - before) / RUNS);
}
