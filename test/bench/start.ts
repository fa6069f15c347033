import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import { inFolder, median } from './measure.ts';
import type { Part, Row } from './report.ts';
import { bench, hangingAfter } from './workload.ts';

const largeWorker = fileURLToPath(new URL('./large-worker.ts', import.meta.url));
const resumeWorker = fileURLToPath(new URL('./resume-worker.ts', import.meta.url));

/** What a new process takes: to import the package, and to continue a run. */
export async function startRows(isQuick: boolean): Promise<Part> {
  const rows = [
    await resumeRow(isQuick ? 3 : 9),
    ...(await largeRows(isQuick ? 20 : 100, isQuick ? 1 : 3)),
    importRow(isQuick ? 7 : 21),
  ];
  return { rows, broken: [] };
}

/** From the start of a process to its first model call, in a run that has 1,000 steps behind it. */
function resumeRow(repetitions: number): Promise<Row> {
  const steps = 1_000;
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const { executor, run, watch, close } = bench({ path, steps: steps + 1, model: hangingAfter(steps) });
    const result = run('long-run');
    while (watch.stepsStored < steps) await new Promise((resolve) => setTimeout(resolve, 10));
    await executor.shutdown();
    await result;
    await close();
    const times = Array.from({ length: repetitions }, (_, i) => {
      const copy = join(folder, String(i));
      mkdirSync(copy);
      copyFileSync(path, join(copy, 'pawl.db'));
      return Number(childNode(resumeWorker, join(copy, 'pawl.db')));
    });
    const note = `to its next model call; starting Node takes ${median(starts(repetitions)).toFixed(0)} ms of it`;
    return { what: `resume from process start, N=${steps}`, value: median(times), unit: 'ms', budget: 250, note };
  });
}

/** A run with a very long transcript goes on in a new executor. */
async function largeRows(megabytes: number, repetitions: number): Promise<Row[]> {
  const found: { isWell: boolean; resumeMs: number; loadBlockMs: number; stepBlockMs: number }[] = [];
  for (let i = 0; i < repetitions; i++) {
    found.push(
      await inFolder(async (folder) => JSON.parse(childNode(largeWorker, join(folder, 'pawl.db'), String(megabytes)))),
    );
  }
  if (!found.every(({ isWell }) => isWell)) throw new Error(`a run of ${megabytes} MB did not end well`);
  const row = (what: string, budget: number, key: 'resumeMs' | 'loadBlockMs' | 'stepBlockMs'): Row => ({
    ...{
      what: `${megabytes} MB transcript: ${what}`,
      value: median(found.map((each) => each[key])),
      unit: 'ms',
      budget,
    },
    note: key === 'resumeMs' ? 'to its next model call' : 'longest time that the event loop was blocked',
  });
  return [
    row('resumes', 5_000, 'resumeMs'),
    row('while it is loaded', 100, 'loadBlockMs'),
    row('one more step, and the end', 100, 'stepBlockMs'),
  ];
}

/** The built package, as a user imports it. */
function importRow(repetitions: number): Row {
  const times: number[] = [];
  const bare: number[] = [];
  for (let i = 0; i < repetitions; i++) {
    bare.push(...starts(1));
    const startedAt = performance.now();
    childNode('--input-type=module', '--eval', "import 'pawl'");
    times.push(performance.now() - startedAt);
  }
  const value = median(times) - median(bare);
  const note = `more than the ${median(bare).toFixed(0)} ms of node -e 0`;
  return { what: 'importing the package', value, unit: 'ms', budget: 30, note };
}

function starts(times: number): number[] {
  return Array.from({ length: times }, () => {
    const startedAt = performance.now();
    childNode('-e', '0');
    return performance.now() - startedAt;
  });
}
