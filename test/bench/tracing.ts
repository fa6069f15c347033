import { fileURLToPath } from 'node:url';
import { childNode } from './child-node.ts';
import { median } from './measure.ts';
import type { Part, Row } from './report.ts';
import type { TracingTurns } from './tracing-worker.ts';

const worker = fileURLToPath(new URL('./tracing-worker.ts', import.meta.url));
const idleWorker = fileURLToPath(new URL('./idle-worker.ts', import.meta.url));

/** What traces cost a step, without a provider and with one, and what they take of the heap of a live run. */
export async function tracingRows(isQuick: boolean): Promise<Part> {
  const { none, idle, recording } = JSON.parse(childNode(worker, isQuick ? '3' : '7')) as TracingTurns;
  const ratio = median(idle.map((cost, i) => cost / (none[i] ?? Number.NaN)));
  const more = median(recording.map((cost, i) => cost - (none[i] ?? Number.NaN)));
  const note = `${median(none).toFixed(3)} ms without tracing; memory store`;
  const [live, ...kinds] = ['none', 'idle', 'recording'].map((kind) => heapOf(isQuick ? 1_000 : 10_000, kind));
  const heap = (what: string, bytes = Number.NaN, budget: number): Row => ({
    ...{ what: `heap of a live run, ${what}`, value: (bytes - (live ?? Number.NaN)) / 1_000, unit: 'KB', budget },
    note: 'more than without tracing',
  });
  return {
    rows: [
      { what: 'CPU a step, tracing without a provider', value: ratio, unit: 'x', budget: 1.03, note },
      {
        what: 'CPU of the traces of a step',
        value: more,
        unit: 'ms',
        budget: 0.15,
        note: 'a batch processor whose exporter drops',
      },
      heap('tracing without a provider', kinds[0], 0.4),
      heap('with a recording provider', kinds[1], 2),
    ],
    broken: [],
  };
}

/** The least of three: what has not been collected yet only adds to it. */
function heapOf(runs: number, kind: string): number {
  const found = [1, 2, 3].map(() => Number(childNode('--expose-gc', idleWorker, String(runs), kind)));
  return Math.min(...found);
}
