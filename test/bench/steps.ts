import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Floor } from './floor.ts';
import { type Cost, inFolder, measured, median, perStep } from './measure.ts';
import { unsavedSteps } from './promise-watch.ts';
import { amount, type Part, type Row } from './report.ts';
import { bench, checkEnded, payloadOf } from './workload.ts';

type Commits = 1 | 2;

interface Case {
  /** Steps of one run. */
  readonly steps: number;
  readonly commits: Commits;
}

/** One case measured once, right after the floor with as many commits. Costs are those of one step. */
interface Measurement {
  readonly floor: Cost;
  readonly ours: Cost;
  readonly mostUnsaved: number;
}

const short: Case = { steps: 100, commits: 1 };
const middle: Case = { steps: 1_000, commits: 1 };
const long: Case = { steps: 3_000, commits: 1 };
/** What an effect that must not happen twice costs. */
const once: Case = { steps: 1_000, commits: 2 };

/** What one durable step costs: a `read` tool takes one commit, a `once` tool two. */
export async function stepRows(isQuick: boolean): Promise<Part> {
  const total = isQuick ? 1_000 : 3_000;
  const cases = isQuick ? [short, middle] : [short, middle, long, once];
  const all = new Map<Case, Measurement[]>(cases.map((each) => [each, []]));
  // A machine's mood changes within minutes: all cases take turns, and the first turn of all warms up.
  for (let repetition = 0; repetition <= (isQuick ? 2 : 7); repetition++) {
    for (const [each, measurements] of all) {
      const measurement = await measure(each, repetition === 0 ? 500 : total);
      if (repetition > 0) measurements.push(measurement);
    }
  }
  const of = (each: Case) => all.get(each) ?? [];
  const rows = [
    ...cases.map((each) => ratioRow(`CPU a step, ${named(each)}`, { of: of(each), key: 'cpuMs', budget: 5 })),
    ...(isQuick ? [] : [flatRow(of(short), of(long))]),
    ...cases
      .filter(({ steps }) => steps === middle.steps)
      .map((each) => ratioRow(`wall time a step, ${named(each)}`, { of: of(each), key: 'wallMs', budget: 3 })),
    ...cases.map((each) => bytesRow(each, of(each))),
    ...(isQuick ? [] : [await storedRow(1_000, 1), await storedRow(20, 100)]),
  ];
  const mostUnsaved = Math.max(...[...all.values()].flat().map((each) => each.mostUnsaved));
  return { rows, broken: unsavedSteps(mostUnsaved) };
}

const named = ({ steps, commits }: Case) => `N=${steps}, ${commits === 1 ? 'one commit' : 'two commits'}`;

function ratioRow(
  what: string,
  { of, key, budget }: { of: readonly Measurement[]; key: 'cpuMs' | 'wallMs'; budget: number },
): Row {
  const ours = median(of.map((each) => each.ours[key]));
  const floor = median(of.map((each) => each.floor[key]));
  const value = median(of.map((each) => each.ours[key] / each.floor[key]));
  return { what, value, unit: 'x', budget, note: `${ours.toFixed(3)} ms, floor ${floor.toFixed(3)} ms` };
}

function flatRow(short: readonly Measurement[], long: readonly Measurement[]): Row {
  const ratios = short.map((each, i) => (long[i]?.ours.cpuMs ?? Number.NaN) / each.ours.cpuMs);
  const note = 'flat: a step does not cost more in a long run';
  return { what: 'CPU a step, N=3000 to N=100', value: median(ratios), unit: 'x', budget: 1.3, note };
}

function bytesRow(each: Case, of: readonly Measurement[]): Row {
  const payload = payloadOf(each.steps) / each.steps;
  const ours = median(of.map(({ ours }) => ours.bytes));
  const floor = median(of.map(({ floor }) => floor.bytes));
  const note = `${amount(ours / 1_000, 'KB')} of ${amount(payload / 1_000, 'KB')}, floor ${amount(floor / 1_000, 'KB')}`;
  const what = `bytes to disk per payload, ${named(each)}`;
  return { what, value: ours / payload, unit: 'x', budget: each.commits === 1 ? 8 : 12, note };
}

/** The file's size while all records are still there, per byte that the runs have said. */
async function storedRow(steps: number, runs: number): Promise<Row> {
  const bytes = await inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const { run, close } = bench({ path, steps, isRecordKept: true });
    await Promise.all(Array.from({ length: runs }, () => run()));
    await close();
    return statSync(path).size;
  });
  const payload = runs * payloadOf(steps);
  const note = `file of ${amount(bytes / 1_000, 'KB')}, payload ${amount(payload / 1_000, 'KB')}`;
  return { what: `stored per payload, ${runs} x ${steps} steps`, value: bytes / payload, unit: 'x', budget: 1.3, note };
}

/** The floor, and then as many runs of the case as make about `total` steps. */
async function measure({ steps, commits }: Case, total: number): Promise<Measurement> {
  const runs = Math.max(1, Math.round(total / steps));
  const floor = perStep(await floorCost(steps * runs, commits), steps * runs);
  const { cost, mostUnsaved } = await ourCost(steps, { runs, commits });
  return { floor, ours: perStep(cost, steps * runs), mostUnsaved };
}

function floorCost(steps: number, commits: Commits): Promise<Cost> {
  return inFolder(async (folder) => {
    const floor = new Floor(join(folder, 'floor.db'));
    return measured(() => {
      floor.run(steps, commits);
      floor.close();
    });
  });
}

function ourCost(
  steps: number,
  { runs, commits }: { readonly runs: number; readonly commits: Commits },
): Promise<{ cost: Cost; mostUnsaved: number }> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const { run, close, watch } = bench({ path, steps, effect: commits === 2 ? 'once' : 'read' });
    const cost = await measured(async () => {
      for (let i = 0; i < runs; i++) checkEnded(await run(), steps);
      // What a large run leaves is removed in pieces, also after its end.
      await close();
    });
    return { cost, mostUnsaved: watch.mostUnsaved };
  });
}
