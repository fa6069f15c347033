// Prints the CPU of a step in this process's first 500 steps, and after 4,000 if that is asked for, as JSON in ms:
// cold-worker.ts <floor|ours> <folder> <cold|warm>
import { join } from 'node:path';
import { Floor } from './floor.ts';
import { measured } from './measure.ts';
import { bench, checkEnded } from './workload.ts';

const [side, folder = '', until] = process.argv.slice(2);
/** Steps of one run. */
const STEPS = 500;
const RUNS_BETWEEN = 7;
const WARM_RUNS = 3;

const { run, close } = side === 'floor' ? floorRuns() : ourRuns();
const cold = await cpuOf(1);
let warm: number | undefined;
if (until === 'warm') {
  await cpuOf(RUNS_BETWEEN);
  warm = await cpuOf(WARM_RUNS);
}
await close();
process.stdout.write(JSON.stringify({ cold, warm }));

/** CPU of a step, ms. */
async function cpuOf(runs: number): Promise<number> {
  const { cpuMs } = await measured(async () => {
    for (let i = 0; i < runs; i++) await run();
  });
  return cpuMs / (runs * STEPS);
}

function floorRuns() {
  const floor = new Floor(join(folder, 'floor.db'));
  return { run: async () => floor.run(STEPS, 1), close: async () => floor.close() };
}

function ourRuns() {
  const ours = bench({ path: join(folder, 'pawl.db'), steps: STEPS });
  return { run: async () => checkEnded(await ours.run(), STEPS), close: ours.close };
}
