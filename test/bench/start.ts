import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import { inFolder, median } from './measure.ts';
import { amount, type Part, type Row } from './report.ts';
import { bench, hangingAfter } from './workload.ts';

const largeWorker = fileURLToPath(new URL('./large-worker.ts', import.meta.url));
const resumeWorker = fileURLToPath(new URL('./resume-worker.ts', import.meta.url));

/** What a new process takes: to import the package, and to continue a run. */
export async function startRows(isQuick: boolean): Promise<Part> {
  if (isQuick) return { rows: importRows(7), broken: [] };
  return { rows: [...importRows(21), await resumeRow(9), ...(await largeRows(100, 3))], broken: [] };
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
    const empty = median(Array.from({ length: repetitions }, () => start('-e', '0').wallMs));
    const note = `to its next model call; a process that does nothing takes ${amount(empty, 'ms')}`;
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

/** The built package, as a user imports it, and a process that does nothing, by turns. */
function importRows(repetitions: number): Row[] {
  const bare: Start[] = [];
  const full: Start[] = [];
  for (let i = 0; i < repetitions; i++) {
    bare.push(start('-e', PRINT_CPU));
    full.push(start('--input-type=module', '--eval', `import 'pawl';${PRINT_CPU}`));
  }
  const row = (what: string, { key, budget }: { readonly key: keyof Start; readonly budget?: number }): Row => {
    const empty = median(bare.map((each) => each[key]));
    const value = median(full.map((each) => each[key])) - empty;
    const note = `more than the ${amount(empty, 'ms')} of a process that does nothing`;
    return { what, value, unit: 'ms', ...(budget === undefined ? {} : { budget }), note };
  };
  return [
    row('importing the package', { key: 'wallMs', budget: 15 }),
    row('importing the package: CPU', { key: 'cpuMs' }),
  ];
}

interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
}

const PRINT_CPU = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)';

/** A process from its start to its end. */
function start(...args: readonly string[]): Start {
  const begun = performance.now();
  const cpuMs = Number(childNode(...args));
  return { wallMs: performance.now() - begun, cpuMs };
}
