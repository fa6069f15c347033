import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import type { Part, Row } from './report.ts';

const idleWorker = fileURLToPath(new URL('./idle-worker.ts', import.meta.url));
const restingWorker = fileURLToPath(new URL('./resting-worker.ts', import.meta.url));

/** The heap of runs that do nothing, each kind in a process of its own. */
export async function memoryRows(isQuick: boolean): Promise<Part> {
  return { rows: [idleRow(isQuick ? 1_000 : 10_000), restingRow(isQuick ? 1_000 : 5_000)], broken: [] };
}

function idleRow(runs: number): Row {
  const bytes = Number(childNode('--expose-gc', idleWorker, String(runs)));
  const note = 'heap of a run that waits for its model';
  return { what: `${runs} idle runs, each`, value: bytes / 1_000, unit: 'KB', budget: 8, note };
}

/** In the process that watches them. */
function restingRow(runs: number): Row {
  const bytes = Number(childNode('--expose-gc', restingWorker, String(runs)));
  const note = 'heap of a run that waits for a person in its store';
  return { what: `${runs} resting runs, each`, value: Math.max(0, bytes) / 1_000, unit: 'KB', budget: 1, note };
}
