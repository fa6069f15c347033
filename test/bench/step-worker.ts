// One run of so many steps in a process of its own: step-worker.ts <none|path of an SQLite file> <steps>.
// Prints the bytes that a step allocates, from the 100th step to the last one. Nothing may be collected meanwhile: it needs
// a young generation that has room for all of them.
import { memoryStore } from 'pawl';
import { bench, hangingAfter } from './workload.ts';

const [path = '', last = ''] = process.argv.slice(2);
const steps = Number(last);
const WARM = 100;

const model = hangingAfter(steps);
const begun = Promise.withResolvers<number>();
const ended = Promise.withResolvers<number>();
const { executor, agent } = bench({
  ...(path === 'none' ? { store: memoryStore() } : { path }),
  steps,
  model: {
    ...model,
    doStream(options) {
      const step = (options.prompt.length - 2) / 2;
      if (step === WARM) begun.resolve(process.memoryUsage().heapUsed);
      if (step === steps) ended.resolve(process.memoryUsage().heapUsed);
      return model.doStream(options);
    },
  },
});
await executor.start(agent, { prompt: 'Go.' });
const bytes = (await ended.promise) - (await begun.promise);
process.stdout.write(String(Math.round(bytes / (steps - WARM))));
process.exit();
