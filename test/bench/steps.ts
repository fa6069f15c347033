import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Floor } from './floor.ts';
import { type Cost, inFolder, measured, medianCost, perStep } from './measure.ts';
import { unsavedSteps } from './promise-watch.ts';
import { amount, type Part, type Row } from './report.ts';
import { bench, checkEnded, payloadOf } from './workload.ts';

type Commits = 1 | 2;

interface StepCosts {
  readonly steps: number;
  readonly commits: Commits;
  readonly floor: Cost;
  readonly ours: Cost;
  /** Bytes that a step has to say. */
  readonly payload: number;
  readonly mostUnsaved: number;
}

/** What one durable step costs: a `read` tool takes one commit, a `once` tool two. */
export async function stepRows(isQuick: boolean): Promise<Part> {
  const repetitions = isQuick ? 3 : 7;
  const total = isQuick ? 1_000 : 3_000;
  await stepCosts({ steps: 100, commits: 2, repetitions: 1, total: 1_000 });
  const reads: StepCosts[] = [];
  const rows: Row[] = [];
  for (const steps of [100, 1_000, 3_000]) {
    const costs = await stepCosts({ steps, commits: 1, repetitions, total });
    reads.push(costs);
    rows.push(cpuRow(costs));
  }
  const [short, , long] = reads as [StepCosts, StepCosts, StepCosts];
  rows.push({
    what: 'CPU a step, N=3000 to N=100',
    value: long.ours.cpuMs / short.ours.cpuMs,
    unit: 'x',
    budget: 1.3,
    note: 'flat: a step does not cost more in a long run',
  });
  const once = await stepCosts({ steps: 1_000, commits: 2, repetitions, total });
  const all = [...reads, once];
  rows.push(
    cpuRow(once),
    ...[short, once].map(wallRow),
    ...[...reads, once].map(bytesRow),
    await storedRow(1_000, 1),
    await storedRow(20, 100),
  );
  return { rows, broken: unsavedSteps(Math.max(...all.map((costs) => costs.mostUnsaved))) };
}

const named = ({ steps, commits }: StepCosts) => `N=${steps}, ${commits === 1 ? 'one commit' : 'two commits'}`;

function cpuRow(costs: StepCosts): Row {
  return ratioRow(`CPU a step, ${named(costs)}`, { ours: costs.ours.cpuMs, floor: costs.floor.cpuMs, budget: 5 });
}

function wallRow(costs: StepCosts): Row {
  return ratioRow(`wall time a step, ${named(costs)}`, {
    ours: costs.ours.wallMs,
    floor: costs.floor.wallMs,
    budget: 3,
  });
}

function ratioRow(what: string, { ours, floor, budget }: { ours: number; floor: number; budget: number }): Row {
  const note = `${ours.toFixed(3)} ms, floor ${floor.toFixed(3)} ms`;
  return { what, value: ours / floor, unit: 'x', budget, note };
}

function bytesRow(costs: StepCosts): Row {
  const { ours, floor, payload, commits } = costs;
  const note = `${amount(ours.bytes / 1_000, 'KB')} of ${amount(payload / 1_000, 'KB')}, floor ${amount(floor.bytes / 1_000, 'KB')}`;
  const what = `bytes to disk per payload, ${named(costs)}`;
  return { what, value: ours.bytes / payload, unit: 'x', budget: commits === 1 ? 8 : 12, note };
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

/** Floor and Pawl by turns, each with as many runs of `steps` steps as make about `total` steps. */
async function stepCosts(options: {
  readonly steps: number;
  readonly commits: Commits;
  readonly repetitions: number;
  readonly total: number;
}): Promise<StepCosts> {
  const { steps, commits, repetitions, total } = options;
  const runs = Math.max(1, Math.round(total / steps));
  const floors: Cost[] = [];
  const ours: Cost[] = [];
  let mostUnsaved = 0;
  for (let repetition = 0; repetition < repetitions; repetition++) {
    floors.push(perStep(await floorCost(steps * runs, commits), steps * runs));
    const measurement = await ourCost(steps, { runs, commits });
    ours.push(perStep(measurement.cost, steps * runs));
    mostUnsaved = Math.max(mostUnsaved, measurement.mostUnsaved);
  }
  const payload = payloadOf(steps) / steps;
  return { steps, commits, floor: medianCost(floors), ours: medianCost(ours), payload, mostUnsaved };
}

function floorCost(steps: number, commits: Commits): Promise<Cost> {
  return inFolder(async (folder) => {
    const floor = new Floor(join(folder, 'floor.db'));
    const cost = await measured(() => floor.run(steps, commits));
    floor.close();
    return cost;
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
    });
    await close();
    return { cost, mostUnsaved: watch.mostUnsaved };
  });
}
