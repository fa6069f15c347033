// A host with many runs, that leaves them or takes them up: node -C pawl-source boot-worker.ts <file> <runs> leave|recover
import { existsSync, readFileSync, writeSync } from 'node:fs';
import { askingModel, bench, hangingAfter } from '../bench/workload.ts';

const WAVE = 500;

const [path = '', count = '0', what] = process.argv.slice(2);
const runs = Number(count);
const isLeaving = what === 'leave';
const { executor, store, run, watch, close } = bench({
  path,
  steps: 4,
  effect: 'once',
  model: isLeaving ? hangingAfter(2) : askingModel(4),
});

if (isLeaving) {
  const results: Promise<unknown>[] = [];
  for (let i = 0; i < runs; i++) {
    results.push(run(`run-${i}`));
    // A wave at a time: ten thousand starts at once would take longer than a store call may.
    if (i % WAVE !== WAVE - 1 && i < runs - 1) continue;
    while (watch.stepsStored < 2 * (i + 1)) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await executor.shutdown();
  await Promise.all(results);
} else {
  const { resumed, failed, skipped, parked } = await executor.recover();
  // Of all but the last thousand the executor has let go; what is not listed any more has ended.
  for (const { runId } of resumed) await executor.get(runId)?.result;
  const left = await store.listInterrupted();
  const report = {
    resumed: resumed.length,
    others: failed.length + skipped.length + parked.length,
    left: left.length,
    tools: watch.tools,
    mostMemory: mostMemory(),
  };
  writeSync(1, JSON.stringify(report));
}
await close();

/** Of the whole life of this program, in MB. Linux counts the memory of the process that started it in `maxRSS`, too. */
function mostMemory(): number {
  const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '';
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  return (found === undefined ? process.resourceUsage().maxRSS : Number(found)) / 1_024;
}
