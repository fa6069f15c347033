import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import { Floor } from './floor.ts';
import { inFolder, measured, median } from './measure.ts';
import { unsavedSteps } from './promise-watch.ts';
import { amount, type Broken, type Part, type Row } from './report.ts';
import { askingModel, type Bench, bench, checkEnded, hangingAfter } from './workload.ts';

const STEPS = 10;
const HALF = STEPS / 2;

const crowdWorker = fileURLToPath(new URL('./crowd-worker.ts', import.meta.url));

/** Many runs at once in one process, and many that were interrupted, taken up again. */
export async function manyRunsRows(isQuick: boolean): Promise<Part> {
  if (isQuick) return quickRows();
  const runs = 1_000;
  const repetitions = 5;
  const recoveries: Recovery[] = [];
  const memory = await memoryRow(runs, 3);
  const read = await throughput({ runs, repetitions, commits: 1 });
  const once = await throughput({ runs, repetitions, commits: 2 });
  for (let repetition = 0; repetition < repetitions; repetition++) recoveries.push(await recovery(runs));
  return {
    rows: [
      read.row,
      once.row,
      memory,
      recoveryRow(`${runs} interrupted runs: all continued`, { recoveries, key: 'continuedMs', budget: 1_500 }),
      recoveryRow(`${runs} interrupted runs: all done`, { recoveries, key: 'doneMs', budget: 4_000 }),
    ],
    broken: [
      ...unsavedSteps(Math.max(read.mostUnsaved, once.mostUnsaved)),
      ...recoveries.flatMap((each) => each.broken),
    ],
  };
}

async function quickRows(): Promise<Part> {
  const { row, mostUnsaved } = await throughput({ runs: 1_000, repetitions: 1, commits: 1 });
  return { rows: [row, await memoryRow(1_000, 1)], broken: unsavedSteps(mostUnsaved) };
}

interface Crowd {
  readonly peakRss: number;
  readonly heap: number;
  readonly ended: number;
  readonly wallMs: number;
}

/** What many runs at once take of the memory of a process that does nothing else. */
async function memoryRow(runs: number, times: number): Promise<Row> {
  const crowds: Crowd[] = [];
  while (crowds.length < times) {
    crowds.push(
      await inFolder(async (folder) =>
        JSON.parse(childNode(crowdWorker, join(folder, 'pawl.db'), String(runs), String(STEPS))),
      ),
    );
  }
  const megabytes = (key: 'peakRss' | 'heap' | 'ended') => median(crowds.map((each) => each[key])) / 1e6;
  const rate = (1_000 * runs * STEPS) / median(crowds.map(({ wallMs }) => wallMs));
  const heap = `heap ${amount(megabytes('heap'), 'MB')} at most, garbage with it, ${amount(megabytes('ended'), 'MB')} after them`;
  return {
    what: `memory of a process, ${runs} runs of ${STEPS} steps at once, one commit`,
    value: megabytes('peakRss'),
    unit: 'MB',
    budget: 200,
    note: `the most of its resident set; ${heap}; ${amount(rate, 'steps/s')}`,
  };
}

/** Steps a second of many runs at once, against the same writes one after the other, each with a commit of its own. */
async function throughput(work: {
  runs: number;
  repetitions: number;
  commits: 1 | 2;
}): Promise<{ row: Row; mostUnsaved: number }> {
  const { runs, repetitions, commits } = work;
  const ratios: number[] = [];
  const ours: number[] = [];
  let mostUnsaved = 0;
  // The first time warms up.
  for (let repetition = 0; repetition <= repetitions; repetition++) {
    const count = repetition === 0 ? runs / 5 : runs;
    const floor = await floorRate(count, commits);
    const { rate, unsaved } = await ourRate(count, commits);
    mostUnsaved = Math.max(mostUnsaved, unsaved);
    if (repetition === 0) continue;
    ratios.push(rate / floor);
    ours.push(rate);
  }
  const row: Row = {
    what: `throughput, ${runs} runs of ${STEPS} steps at once, ${commits === 1 ? 'one commit' : 'two commits'}`,
    value: median(ratios),
    unit: 'x',
    budget: commits === 1 ? 1.8 : 1.2,
    isFloor: true,
    note: `${amount(median(ours), 'steps/s')}; the floor: begin, steps, outcome and delete of each run, ungrouped`,
  };
  return { row, mostUnsaved };
}

function recoveryRow(
  what: string,
  { recoveries, key, budget }: { recoveries: readonly Recovery[]; key: 'continuedMs' | 'doneMs'; budget: number },
): Row {
  const note =
    key === 'doneMs' ? `each had ${HALF} of ${STEPS} steps left` : 'each has recorded one more step since the boot';
  return { what, value: median(recoveries.map((each) => each[key])), unit: 'ms', budget, note };
}

function floorRate(runs: number, commits: 1 | 2): Promise<number> {
  return inFolder(async (folder) => {
    const floor = new Floor(join(folder, 'floor.db'));
    const { wallMs } = await measured(() => {
      for (let run = 0; run < runs; run++) floor.wholeRun(STEPS, commits);
    });
    floor.close();
    return (1_000 * runs * STEPS) / wallMs;
  });
}

function ourRate(runs: number, commits: 1 | 2): Promise<{ rate: number; unsaved: number }> {
  return inFolder(async (folder) => {
    const { run, close, watch } = bench({
      path: join(folder, 'pawl.db'),
      steps: STEPS,
      effect: commits === 2 ? 'once' : 'read',
    });
    const { wallMs } = await measured(async () => {
      const results = await Promise.all(Array.from({ length: runs }, () => run()));
      for (const result of results) checkEnded(result, STEPS);
    });
    await close();
    return { rate: (1_000 * runs * STEPS) / wallMs, unsaved: watch.mostUnsaved };
  });
}

interface Recovery {
  /** Until each run had recorded a step in the new executor, ms. */
  readonly continuedMs: number;
  readonly doneMs: number;
  readonly broken: readonly Broken[];
}

/** Runs that were left halfway, taken up by an executor that knows nothing of them. */
function recovery(runs: number): Promise<Recovery> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    await leaveHalfway(bench({ path, steps: STEPS, model: hangingAfter(HALF) }), runs);

    const startedAt = performance.now();
    const next = bench({ path, steps: STEPS, model: askingModel(STEPS) });
    const { resumed } = await next.executor.recover({ concurrency: runs });
    const results = await Promise.all(resumed.map(({ runId }) => next.executor.get(runId)?.result));
    const doneMs = performance.now() - startedAt;
    const continuedMs = Math.max(...next.watch.firstStored.values()) - startedAt;
    await next.close();

    const ended = results.filter((result) => result?.status === 'ok').length;
    const again = next.watch.tools - runs * HALF;
    const broken: Broken[] = [];
    if (ended !== runs) broken.push({ promise: 'all interrupted runs end well', seen: `${ended} of ${runs}` });
    if (again > 0) broken.push({ promise: 'no recorded call runs again', seen: `${again} calls ran again` });
    return { continuedMs, doneMs, broken };
  });
}

/** Starts runs that come to wait for their model after half of their steps, and leaves them there. */
async function leaveHalfway({ run, executor, watch, close }: Bench, runs: number): Promise<void> {
  const results = Array.from({ length: runs }, () => run());
  while (watch.tools < runs * HALF || watch.stepsStored < runs * HALF) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await executor.shutdown();
  await Promise.all(results);
  await close();
}
