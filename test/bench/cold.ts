import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import { inFolder, median } from './measure.ts';
import type { Part, Row } from './report.ts';

const worker = fileURLToPath(new URL('./cold-worker.ts', import.meta.url));

/** CPU of a step, ms. */
interface Sample {
  readonly cold: number;
  readonly warm?: number;
}

interface Pair {
  readonly floor: Sample;
  readonly ours: Sample;
}

/** What a step costs in a process that has just begun, and later in the same process. Each sample is a process of its own. */
export async function coldRows(isQuick: boolean): Promise<Part> {
  const [colds, warms] = isQuick ? [3, 1] : [16, 5];
  const pairs: Pair[] = [];
  for (let i = 0; i < colds; i++) pairs.push(await pair(i < warms));
  const rows = [
    rowOf('CPU a step, the first 500 steps of a process', { pairs, of: ({ cold }) => cold, budget: 4 }),
    rowOf('CPU a step, after 4,000 steps of a process', {
      pairs: pairs.slice(0, warms),
      of: ({ warm }) => warm ?? Number.NaN,
      budget: 2.5,
    }),
  ];
  return { rows, broken: [] };
}

async function pair(isWarm: boolean): Promise<Pair> {
  const sample = (side: 'floor' | 'ours') =>
    inFolder(async (folder) => JSON.parse(childNode(worker, side, folder, isWarm ? 'warm' : 'cold')) as Sample);
  return { floor: await sample('floor'), ours: await sample('ours') };
}

function rowOf(
  what: string,
  from: { readonly pairs: readonly Pair[]; readonly of: (sample: Sample) => number; readonly budget: number },
): Row {
  const { pairs, of, budget } = from;
  const ours = median(pairs.map((each) => of(each.ours)));
  const floor = median(pairs.map((each) => of(each.floor)));
  const value = median(pairs.map((each) => of(each.ours) / of(each.floor)));
  const note = `${ours.toFixed(3)} ms, floor ${floor.toFixed(3)} ms; one commit, ${pairs.length === 1 ? 'a process' : `${pairs.length} processes`} of each`;
  return { what, value, unit: 'x', budget, note };
}
