// Prints what one resting run takes of the heap of the process that watches it, in bytes:
// node --expose-gc resting-worker.ts <how many runs> [workflow]
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool, defineWorkflow } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, scriptedModel } from 'pawl/testing';
import { setup } from 'xstate';
import { inFolder } from './measure.ts';

const runs = Number(process.argv[2]);
const isWorkflow = process.argv[3] === 'workflow';
const AT_ONCE = 50;
/** What grows only once, buffers and compiled code, has its size after so many runs. */
const FIRST_RUNS = 1_200;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => 'paid',
});
const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });
const workflow = defineWorkflow({
  id: 'patient',
  machine: setup({}).createMachine({
    initial: 'waiting',
    states: { waiting: { after: { 86400000: 'done' } }, done: { type: 'final' } },
  }),
});

await inFolder(async (folder) => {
  const store = sqliteStore({ path: join(folder, 'pawl.db'), durability: 'process' });
  const models = () => scriptedModel([callTool('pay')]);
  const executor = createExecutor({
    models,
    agents: [agent],
    workflows: [workflow],
    store,
    defaults: { waitLingerMs: 1 },
  });
  await executor.recover();
  const rest = async (count: number) => {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const group = Array.from({ length: Math.min(AT_ONCE, left) }, () =>
        isWorkflow ? executor.run(workflow, {} as never) : executor.run(agent, { prompt: 'Pay it.' }),
      );
      for (const { status } of await Promise.all(group)) {
        if (status !== 'waiting') throw new Error(`a run is ${status}, and should wait`);
      }
    }
  };
  await rest(FIRST_RUNS);
  const before = await heapUsed();
  await rest(runs);
  const after = await heapUsed();
  process.stdout.write(`${Math.round((after - before) / runs)}\n`);
});
process.exit();

/** After the writes and timers of the runs are through. */
async function heapUsed(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
