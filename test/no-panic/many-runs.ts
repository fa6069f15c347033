// Many runs in one process: node --expose-gc --no-flush-bytecode -C pawl-source many-runs.ts <runs of one signal> <further runs>
import { getEventListeners } from 'node:events';
import { createExecutor, defineAgent, type RunOptions } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { toolOf } from '../fixtures/host.ts';

const SIDE_BY_SIDE = 50;
/** Weak tables never shrink: they stay as large as what was not yet collected once made them. */
const BETWEEN_COLLECTIONS = 5_000;
/** Collections until what is weak or merely old, code for example, is gone as well. */
const ROUNDS = 5;

/** What is kept on purpose, the last 1,000 results, is there after those of one signal. */
const [signalled, runs] = process.argv.slice(2).map(Number) as [number, number];
const warnings: string[] = [];
process.on('warning', ({ name }) => warnings.push(name));

const agent = defineAgent({ id: 'short', instructions: 'Answer.', tools: [toolOf('look')] });
let begun = 0;
/** A model of its own for each run, since a scripted model remembers what it was asked; each tenth calls a tool. */
const executor = createExecutor({
  models: () => scriptedModel(begun++ % 10 === 0 ? [callTool('look'), reply('done')] : [reply('done')]),
  agents: [agent],
});

async function run(count: number, options: RunOptions = {}): Promise<void> {
  for (let done = 0; done < count; done += SIDE_BY_SIDE) {
    const group = Array.from({ length: Math.min(SIDE_BY_SIDE, count - done) }, () =>
      executor.run(agent, { prompt: 'Go.' }, options),
    );
    for (const { status } of await Promise.all(group)) if (status !== 'ok') throw new Error(`a run ended as ${status}`);
  }
}

async function collect(): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
}

async function heapUsed(): Promise<number> {
  await collect();
  return process.memoryUsage().heapUsed;
}

async function listenersOfOneSignal(): Promise<number> {
  const caller = new AbortController();
  await run(signalled, { signal: caller.signal });
  return getEventListeners(caller.signal, 'abort').length;
}

async function bytesPerRun(): Promise<number> {
  const before = await heapUsed();
  for (let done = 0; done < runs; done += BETWEEN_COLLECTIONS) {
    await run(BETWEEN_COLLECTIONS);
    await collect();
  }
  return Math.round(((await heapUsed()) - before) / runs);
}

const listeners = await listenersOfOneSignal();
const seen = { listeners, bytesPerRun: await bytesPerRun() };
process.stdout.write(JSON.stringify({ ...seen, live: executor.runs.get().length, warnings }));
