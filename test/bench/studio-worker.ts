// A worker whose CPU is measured while Studio is open, and while it is not: node studio-worker.ts <the file of its store>
// It tells its parent when it works; asked for anything, it answers with the CPU that it has used, ms.
import { askingModel, bench } from './workload.ts';

const RUNS = 5;
const STEPS = 100_000;
/** A model answers after this time: 10 steps a second for each run. */
const ANSWER_MS = 100;

const model = askingModel(STEPS);
const slow: typeof model = {
  ...model,
  doStream: async (options) => {
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    return model.doStream(options);
  },
};
const [path = ''] = process.argv.slice(2);
const { executor, agent } = bench({ path, steps: STEPS, model: slow, hasJournal: true });
for (let run = 0; run < RUNS; run++) {
  const { accepted } = await executor.start(agent, { runId: `r${run}`, prompt: 'Collect the pieces.' });
  await accepted;
}
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.((user + system) / 1_000);
});
process.on('disconnect', () => process.exit());
process.send?.('works');
