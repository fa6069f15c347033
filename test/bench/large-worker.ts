// A run with a transcript of so many megabytes goes on, and takes one more step: large-worker.ts <file> <MB>. Prints JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createExecutor, defineAgent, defineTool, type Model } from 'pawl';
import { createCheckpointerFactory, type RunDelta } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { askingModel, callMessage, hangingAfter, resultMessage } from './workload.ts';

const [path = '', megabytes = '100'] = process.argv.slice(2);
const STEPS = Number(megabytes) * 16;
const RESULT_CHARS = 64_000;

const store = sqliteStore({ path });
const lookup = defineTool({
  name: 'lookup',
  description: 'Looks a piece up.',
  input: { type: 'object' },
  effect: 'read',
  execute: () => 'found',
});
const agent = defineAgent({ id: 'large', instructions: 'Collect.', tools: [lookup], maxSteps: STEPS + 9 });
const executorWith = (model: Model) =>
  createExecutor({
    models: { fast: model },
    agents: [agent],
    ports: { checkpointer: createCheckpointerFactory(store, { maxRecordBytes: 2 ** 30 }) },
    defaults: { maxSameToolCallRepeats: STEPS },
  });

async function leaveLargeRun(): Promise<void> {
  const executor = executorWith(hangingAfter(0));
  await executor.start(agent, { runId: 'large', prompt: 'Go.' });
  await executor.shutdown();
  const record = await store.load('large');
  if (!record) throw new Error('there is no record');
  const { messages, inputs: _, images: __, ...head } = record;
  for (let step = 0; step < STEPS; step++) {
    const result = resultMessage(step);
    for (const part of result.content) part.output.value = part.output.value.padEnd(RESULT_CHARS, 'x');
    const revision = (head.revision ?? 0) + step + 1;
    const delta = { runId: 'large', revision, from: messages.length + 2 * step, messages: [callMessage(step), result] };
    await store.append({ ...delta, head: { ...head, revision, iteration: step + 1 } } as unknown as RunDelta);
  }
}

await leaveLargeRun();
const calls: number[] = [];
const model = askingModel(STEPS + 1);
const counting: Model = {
  ...model,
  doStream: (options) => {
    calls.push(performance.now());
    return model.doStream(options);
  },
};
const executor = executorWith(counting);
const delay = monitorEventLoopDelay({ resolution: 2 });
delay.enable();
const startedAt = performance.now();
const { resumed } = await executor.recover();
const loadBlockMs = delay.max / 1e6;
delay.reset();
const result = await executor.get('large')?.result;
// A turn of the event loop may come before the call.
const resumeMs = (calls[0] ?? Number.NaN) - startedAt;
// Its record is removed in pieces, also after its end.
await store.close();
await new Promise((resolve) => setTimeout(resolve, 20));
const stepBlockMs = delay.max / 1e6;
const isWell = resumed.length === 1 && result?.status === 'ok' && result.iterations === STEPS + 2;
console.log(JSON.stringify({ isWell, resumeMs, loadBlockMs, stepBlockMs }));
