// Prints what one idle run takes of the heap, in bytes: node --expose-gc idle-worker.ts <how many runs> [none|idle|recording]
import { join } from 'node:path';
import { inFolder } from './measure.ts';
import { tracings } from './tracings.ts';
import { bench, hangingAfter } from './workload.ts';

const runs = Number(process.argv[2]);
const tracing = tracings[process.argv[3] ?? 'none']?.();

await inFolder(async (folder) => {
  const { executor, agent } = bench({ path: join(folder, 'pawl.db'), steps: 1, model: hangingAfter(0), tracing });
  const start = (count: number) =>
    Promise.all(Array.from({ length: count }, () => executor.start(agent, { prompt: 'Collect the pieces.' })));
  await start(100);
  const before = await heapUsed();
  await start(runs);
  const after = await heapUsed();
  process.stdout.write(`${Math.round((after - before) / runs)}\n`);
});
process.exit();

/** After the writes and timers of the start are through: what they hold for a moment is more than what tracing keeps. */
async function heapUsed(): Promise<number> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    globalThis.gc?.();
    globalThis.gc?.();
    const { heapUsed: now } = process.memoryUsage();
    if (now > before * 0.999) return now;
    before = now;
  }
}
