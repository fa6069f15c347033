import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { watchedStore } from '../../fixtures/watched-store.ts';
import { packageFlags } from '../../toolchain/programs.ts';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => 'paid',
});
const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });

test('1,000 runs that rest hold no claim, and the process that watches them one timer beside that of its store (waiting 35)', async () => {
  const clock = testClock(1_000_000);
  const inner = memoryStore({ clock });
  const store = watchedStore({}, inner);
  const executor = createExecutor({
    models: () => scriptedModel([callTool('pay')]),
    agents: [agent],
    store,
    clock,
  });
  await executor.recover();
  const runs = Array.from({ length: 1_000 }, (_, i) => executor.run(agent, { runId: `r${i}`, prompt: 'Pay.' }));
  let isOver = false;
  const results = Promise.all(runs).finally(() => {
    isOver = true;
  });
  while (!isOver) await clock.advance(1_000);
  expect(new Set((await results).map(({ status }) => status))).toEqual(new Set(['waiting']));
  // The watch; and the store's own, which removes what need not be kept any longer.
  expect(clock.pending).toBe(2);
  const before = store.methods.length;
  await clock.advance(600_000);
  expect(clock.pending).toBe(2);
  // It asks what is due, and seldom which threads are held up. It claims nothing, renews nothing, and reads no record.
  const asked = store.methods.slice(before);
  expect(new Set(asked)).toEqual(new Set(['due.list', 'threads.list']));
  const threads = asked.filter((name) => name === 'threads.list').length;
  expect(threads).toBeLessThanOrEqual((asked.length - threads) / 30 + 1);
  expect(await inner.due.countResting()).toBe(1_000);
  const claims = await Promise.all(Array.from({ length: 1_000 }, (_, i) => inner.claim(`r${i}`, 'another', 1_000)));
  expect(claims).not.toContain(null);
  await executor.shutdown();
});

test('a run that rests takes at most 2 KB of the process that watches it (waiting 35)', { timeout: 180_000 }, () => {
  const worker = fileURLToPath(new URL('../../bench/resting-worker.ts', import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, [...packageFlags, '--expose-gc', worker, '1000'], {
    encoding: 'utf8',
  });
  expect(Number.parseInt(stdout, 10), stderr).toBeLessThanOrEqual(2_048);
});
