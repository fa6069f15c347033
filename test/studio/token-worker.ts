// A thread that asks for the tokens of many stores, each at the same moment as the other threads.
import { parentPort, workerData } from 'node:worker_threads';
import { studioToken } from '../../src/cli/studio/token.ts';

const { home, stores, threads, gate } = workerData as {
  readonly home: string;
  readonly stores: number;
  readonly threads: number;
  readonly gate: SharedArrayBuffer;
};

const arrived = new Int32Array(gate);
const tokens: string[] = [];
for (let store = 0; store < stores; store++) {
  Atomics.add(arrived, 0, 1);
  // No thread is ahead of the others.
  while (Atomics.load(arrived, 0) < (store + 1) * threads);
  tokens.push(studioToken(`store ${store}`, { isNew: false, home }));
}
parentPort?.postMessage(tokens);
