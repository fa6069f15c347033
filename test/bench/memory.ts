import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import type { Part, Row } from './report.ts';

const idleWorker = fileURLToPath(new URL('./idle-worker.ts', import.meta.url));
const askedWorker = fileURLToPath(new URL('./asked-worker.ts', import.meta.url));
const restingWorker = fileURLToPath(new URL('./resting-worker.ts', import.meta.url));

/** How often a probe and a scrape come, ms. */
const ASKED_MS = 5_000;

/** The heap of runs that do nothing, each kind in a process of its own, and what it costs to ask for them. */
export async function memoryRows(isQuick: boolean): Promise<Part> {
  return {
    rows: [idleRow(isQuick ? 1_000 : 10_000), restingRow(isQuick ? 1_000 : 5_000), askedRow(isQuick ? 1_000 : 10_000)],
    broken: [],
  };
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

/** Of one core. */
function askedRow(runs: number): Row {
  const cpuMs = Number(childNode(askedWorker, String(runs)));
  const note = `${cpuMs.toFixed(2)} ms of CPU for the probe and the scrape, SQLite`;
  const what = `health and metrics asked each ${ASKED_MS / 1_000} s, beside ${runs} resting runs`;
  return { what, value: (cpuMs / ASKED_MS) * 100, unit: '%', budget: 1, note };
}
