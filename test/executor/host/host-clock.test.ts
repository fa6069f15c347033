import { type Clock, createExecutor, defineAgent, memoryStore } from 'pawl';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';

const agent = defineAgent({ id: 'worker', instructions: 'Work.', maxRuntimeMs: Number.MAX_SAFE_INTEGER });
const nodeClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

test('a time that Node’s timers cannot hold is a long one, whichever clock the host gives (executor 9)', async () => {
  const warned: string[] = [];
  const onWarning = ({ name }: Error) => warned.push(name);
  process.on('warning', onWarning);
  const executor = createExecutor({ models: { fast: scriptedModel([reply('done')]) }, clock: nodeClock });
  expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'done' });
  await executor.shutdown();
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  expect(warned).toEqual([]);
});

test('timers that replace those of a clock that throws are taken back like any other (executor 9)', async () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const clock: Clock = {
    ...nodeClock,
    setTimeout: () => {
      throw new Error('no timers today');
    },
    clearTimeout: () => {},
  };
  const logger = { warn: () => {} };
  const options = { models: { fast: scriptedModel([hang()]) }, store: memoryStore(), clock, logger };
  const executor = createExecutor(options);
  const run = await executor.start(agent, { prompt: 'Go.' });
  await run.cancel();
  await executor.shutdown();
  const after = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  expect(after).toBe(before);
});
