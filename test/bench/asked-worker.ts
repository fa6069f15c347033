// Prints the CPU of one question for health and metrics, beside runs that rest, in ms: node asked-worker.ts <how many runs>
import { join } from 'node:path';
import { type Clock, createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, scriptedModel } from 'pawl/testing';
import { measuring } from '../otel/measuring.ts';
import { inFolder, measured } from './measure.ts';

const runs = Number(process.argv[2]);
const AT_ONCE = 50;
const ROUNDS = 100;
/** A question that comes sooner is answered without the store. */
const PAUSE_MS = 5_000;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => 'paid',
});
const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });

await inFolder(async (folder) => {
  let aheadMs = 0;
  const clock: Clock = {
    now: () => Date.now(),
    monotonic: () => performance.now() + aheadMs,
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  };
  const { tracing, read } = measuring();
  const executor = createExecutor({
    models: () => scriptedModel([callTool('pay')]),
    agents: [agent],
    store: sqliteStore({ path: join(folder, 'pawl.db'), durability: 'process' }),
    clock,
    defaults: { waitLingerMs: 1 },
    tracing,
  });
  for (let left = runs; left > 0; left -= AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, left) }, () => executor.run(agent, { prompt: 'Pay it.' })),
    );
  const ask = async () => {
    aheadMs += PAUSE_MS;
    const { runs: counted } = await executor.health();
    const { of } = await read();
    if (counted?.live !== 0 || of('pawl.runs.waiting') !== runs) throw new Error('the runs should wait');
  };
  for (let round = 0; round < 10; round++) await ask();
  const { cpuMs } = await measured(async () => {
    for (let round = 0; round < ROUNDS; round++) await ask();
  });
  process.stdout.write(`${cpuMs / ROUNDS}\n`);
});
process.exit();
