// Goes on with the one run of a store, and prints how old the process is at its first model call: resume-worker.ts <file>
import { askingModel, bench } from './workload.ts';

const model = askingModel(0);
const { executor } = bench({
  path: process.argv[2] ?? '',
  steps: 1_001,
  model: {
    ...model,
    doStream: async ({ prompt }) => {
      if (prompt.length < 2_000) throw new Error(`the run began anew: its model was sent ${prompt.length} messages`);
      process.stdout.write(`${performance.now()}\n`, () => process.exit());
      return new Promise(() => {});
    },
  },
});
const { resumed } = await executor.recover();
if (resumed.length !== 1) throw new Error(`${resumed.length} runs were resumed instead of one`);
