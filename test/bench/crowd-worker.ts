// Many runs at once in a process that does nothing else, one commit a step: crowd-worker.ts <file> <runs> <steps>. Prints JSON.
import { usedHeap } from './measure.ts';
import { bench, checkEnded } from './workload.ts';

const [path = '', runs = '', steps = ''] = process.argv.slice(2);
const { run, close } = bench({ path, steps: Number(steps) });
let heap = 0;
const looking = setInterval(() => {
  heap = Math.max(heap, process.memoryUsage().heapUsed);
}, 10);
const begun = performance.now();
const results = await Promise.all(Array.from({ length: Number(runs) }, () => run()));
const wallMs = performance.now() - begun;
clearInterval(looking);
// KB, as the system counts it.
const peakRss = process.resourceUsage().maxRSS * 1_024;
for (const result of results) checkEnded(result, Number(steps));
const ended = await usedHeap();
await close();
process.stdout.write(JSON.stringify({ peakRss, heap, ended, wallMs }));
