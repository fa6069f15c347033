// Prints what one idle run takes of the heap, in bytes: node --expose-gc idle-worker.ts <how many runs>
import { join } from 'node:path';
import { inFolder } from './measure.ts';
import { bench, hangingAfter } from './workload.ts';

const runs = Number(process.argv[2]);

await inFolder(async (folder) => {
  const { executor, agent } = bench({ path: join(folder, 'pawl.db'), steps: 1, model: hangingAfter(0) });
  const start = (count: number) =>
    Promise.all(Array.from({ length: count }, () => executor.start(agent, { prompt: 'Collect the pieces.' })));
  await start(100);
  const before = await heapUsed();
  await start(runs);
  const after = await heapUsed();
  process.stdout.write(`${Math.round((after - before) / runs)}\n`);
});
process.exit();

/** After the writes and timers of the start are through. */
async function heapUsed(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 200));
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
